#include "builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace lane {
namespace {

using Kind = ProgramStatement::Kind;

std::string shape_text(int64_t experts, int64_t rows, int64_t columns) {
  std::string text = " with ";
  if (experts != 1) text += fmt::format("experts {} and ", experts);
  if (rows != 1) text += fmt::format("rows {} and ", rows);
  return text + fmt::format("columns {}", columns);
}

// In the table's order, so that equal ops have equal texts.
std::string options_text(OptionList options) {
  std::sort(options.begin(), options.end());
  std::string text;
  for (const auto& [key, value] : options)
    text += fmt::format(" {} {} {}", text.empty() ? "with" : "and", option_name(key),
                        option_is_integer(key) ? fmt::format("{}", int64_t(value)) : float_text(value));
  return text;
}

}  // namespace

std::string Builder::constant(const Weight& weight) {
  const std::string name = constant_name(weight.tensor);
  if (!declared_.insert(name).second) return name;
  const char* kind = weight.matrix ? "Quantized" : "Constant";
  constants_.push_back(
      {.kind = Kind::Constant, .name = name, .tail = kind + shape_text(weight.experts, weight.rows, weight.columns)});
  return name;
}

std::string Builder::carried(std::string_view base, int64_t experts, int64_t rows, int64_t columns) {
  carried_.push_back(
      {.kind = Kind::Carried, .each = true, .name = at(base), .tail = "Carried" + shape_text(experts, rows, columns)});
  return at(base);
}

std::string Builder::say(ProgramStatement statement) {
  step_.push_back(std::move(statement));
  return step_.back().name;
}

std::string Builder::let(std::string_view base, OpKind op, std::vector<std::string> operands, OptionList options) {
  return say(
      {.kind = Kind::Op, .name = at(base), .op = op, .operands = std::move(operands), .tail = options_text(options)});
}

std::string Builder::each(std::string_view base, OpKind op, std::vector<std::string> operands, OptionList options) {
  return say({.kind = Kind::Op,
              .each = true,
              .name = at(base),
              .op = op,
              .operands = std::move(operands),
              .tail = options_text(options)});
}

std::string Builder::lookup(const std::string& name, const std::string& table) {
  return say({.kind = Kind::Lookup, .name = name, .op = OpKind::RowLookup, .operands = {table}});
}

std::string Builder::last(std::string_view base, const std::string& rows) {
  return say({.kind = Kind::Last, .name = at(base), .op = OpKind::RowSlice, .operands = {rows}});
}

void Builder::write(const std::string& carried, const std::string& rows) {
  say({.kind = Kind::Write, .each = true, .name = carried, .op = OpKind::Write, .operands = {rows}});
}

void Builder::update(const std::string& carried, OpKind op, std::vector<std::string> operands, OptionList options) {
  say({.kind = Kind::Update,
       .each = true,
       .name = carried,
       .op = op,
       .operands = std::move(operands),
       .tail = options_text(options)});
}

void Builder::show(const std::string& name) { say({.kind = Kind::Show, .each = true, .name = name}); }

std::vector<ProgramStatement> Builder::take() {
  std::vector<ProgramStatement> all = std::move(constants_);
  all.insert(all.end(), carried_.begin(), carried_.end());
  all.insert(all.end(), step_.begin(), step_.end());
  return all;
}

}  // namespace lane
