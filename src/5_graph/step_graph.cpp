// Look-ups and listings of a StepGraph.
#include <fmt/format.h>

#include <algorithm>

#include "lane/graph.h"

namespace lane {
namespace {

const char* kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::Constant:
      return "constant";
    case ValueKind::Quantized:
      return "quantized";
    case ValueKind::Carried:
      return "carried";
    case ValueKind::Input:
      return "input";
    case ValueKind::Computed:
      return "computed";
  }
  return "";
}

std::string place_text(const StepGraph& graph, const Place& place) {
  if (place.base == kNoValue) return std::to_string(place.offset);
  return fmt::format("{} + {}", graph.value(place.base).name, place.offset);
}

/// "keys_0 <- write keys_0, kr_0 [pos + 1]" changes state; "q_0: 64 = rotation …" computes.
std::string op_text(const StepGraph& graph, const Op& op) {
  const Value& result = graph.value(op.result);
  std::string text = result.name;
  if (result.kind == ValueKind::Computed)
    text += fmt::format(": {}{} =", to_text(result.shape), result.integers ? " integers" : "");
  else
    text += " <-";
  text += fmt::format(" {}", op_name(op.kind));
  for (size_t i = 0; i < op.operands.size(); ++i) text += (i ? ", " : " ") + graph.value(op.operands[i]).name;
  if (op.from) text += fmt::format(" [{}", place_text(graph, *op.from));
  if (op.through && op.through != op.from) text += fmt::format(" .. {}", place_text(graph, *op.through));
  if (op.from) text += "]";
  for (const auto& [key, value] : op.options)
    text += fmt::format("; {} {}", option_name(key),
                        option_is_integer(key) ? std::to_string(int64_t(value)) : float_text(value));
  return text;
}

}  // namespace

std::string to_text(const Shape& s) {
  if (s.experts != 1) return fmt::format("{} x {} x {}", s.experts, s.rows, s.columns);
  if (s.rows != 1) return fmt::format("{} x {}", s.rows, s.columns);
  return std::to_string(s.columns);
}

bool Op::has(OptionKey key) const {
  return std::any_of(options.begin(), options.end(), [&](const auto& o) { return o.first == key; });
}

double Op::option(OptionKey key, double otherwise) const {
  for (const auto& [k, value] : options)
    if (k == key) return value;
  return otherwise;
}

int64_t Op::integer(OptionKey key, int64_t otherwise) const { return int64_t(option(key, double(otherwise))); }

ValueId StepGraph::find(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == name) return ValueId(i);
  return kNoValue;
}

std::string to_text(const StepGraph& graph) {
  std::string text;
  for (const Value& v : graph.values)
    if (v.kind != ValueKind::Computed) text += fmt::format("{} {}: {}\n", kind_name(v.kind), v.name, to_text(v.shape));
  for (const Op& op : graph.ops) text += op_text(graph, op) + "\n";
  for (ValueId id : graph.outputs) text += "output " + graph.value(id).name + "\n";
  return text;
}

}  // namespace lane
