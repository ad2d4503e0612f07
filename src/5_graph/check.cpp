#include "check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lane/error.h"

namespace lane::graph {
namespace {

/// What an operand may be, as a set.
enum Role : unsigned {
  kStep = 1,       // computed reals
  kIds = 2,        // computed integers
  kVector = 4,     // Constant
  kMatrix = 8,     // Quantized or Constant
  kState = 16,     // Carried
  kPosition = 32,  // one Input integer
  kTokens = 64,    // an Input
};

struct RoleName {
  Role role;
  const char* name;
};
constexpr std::array kRoleNames = {RoleName{kStep, "an array the step computes"},
                                   RoleName{kIds, "chosen ids"},
                                   RoleName{kVector, "a Constant"},
                                   RoleName{kMatrix, "a Quantized or Constant matrix"},
                                   RoleName{kState, "a Carried array"},
                                   RoleName{kPosition, "an Input of one integer"},
                                   RoleName{kTokens, "an Input"}};

unsigned roles_of(const Value& v) {
  switch (v.kind) {
    case ValueKind::Constant:
      return kVector | kMatrix;
    case ValueKind::Quantized:
      return kMatrix;
    case ValueKind::Carried:
      return kState;
    case ValueKind::Input:
      return kTokens | (v.shape.columns == 1 ? kPosition : 0u);
    case ValueKind::Computed:
      return v.integers ? kIds : kStep;
  }
  return 0;
}

/// Roles that an op's operands may have, in order; the last entry is that of all further operands.
std::vector<unsigned> operand_roles(OpKind kind) {
  switch (kind) {
    case OpKind::RowLookup:
      return {kMatrix, kTokens};
    case OpKind::Sum:
    case OpKind::Product:
      return {kStep, kStep | kVector};
    case OpKind::RmsNorm:
    case OpKind::LayerNorm:
      return {kStep, kVector};
    case OpKind::MatrixProduct:
    case OpKind::HeadProduct:
      return {kMatrix, kStep};
    case OpKind::RowSlice:
    case OpKind::Rows:
      return {kStep | kIds};
    case OpKind::Rotation:
      return {kStep, kPosition, kVector};
    case OpKind::PositionScale:
      return {kStep, kPosition};
    case OpKind::Attention:
      return {kStep, kState, kState, kPosition, kVector};
    case OpKind::TopChoice:
      return {kStep, kVector};
    case OpKind::ChosenShare:
      return {kStep, kIds};
    case OpKind::ExpertProduct:
    case OpKind::ExpertBias:
      return {kMatrix, kStep, kIds};
    case OpKind::ShortConvolution:
      return {kState, kStep, kMatrix};
    case OpKind::Decay:
      return {kStep, kVector};
    case OpKind::Shift:
    case OpKind::DeltaRule:
    case OpKind::DeltaReading:
    case OpKind::Write:
      return {kState, kStep};
    default:
      return {kStep};
  }
}

std::string role_names(unsigned roles) {
  std::string text;
  for (const RoleName& r : kRoleNames)
    if (roles & r.role) text += (text.empty() ? "" : " or ") + std::string(r.name);
  return text;
}

void check_operands(const Checked& c) {
  check_operand_count(c.op.kind, c.op.operands.size(), c.op.line);
  const std::vector<unsigned> roles = operand_roles(c.op.kind);
  for (size_t i = 0; i < c.op.operands.size(); ++i) {
    const unsigned accepted = roles[std::min(i, roles.size() - 1)];
    if (!(roles_of(c.in(i)) & accepted)) c.refuse(fmt::format("'{}' should be {}", c.in(i).name, role_names(accepted)));
  }
}

struct Range {
  double low, high;
  const char* text;
};

Range range_of(OptionKey key) {
  switch (key) {
    case OptionKey::Paired:
    case OptionKey::Normalised:
    case OptionKey::Tiled:
      return {0, 1, "0 or 1"};
    case OptionKey::By:
      return {0, 2, "0 to 2"};
    case OptionKey::Epsilon:
      return {0, 1e30, "0 or more"};
    case OptionKey::Base:
    case OptionKey::Magnitude:
    case OptionKey::Linear:
    case OptionKey::Yarn:
    case OptionKey::Fast:
    case OptionKey::Slow:
    case OptionKey::Limit:
      return {1e-30, 1e30, "more than 0"};
    case OptionKey::Factor:
    case OptionKey::Scale:
    case OptionKey::Slope:
      return {-1e30, 1e30, "a size up to 1e30"};
    default:
      return {1, 2147483647, "1 to 2147483647"};  // anything counted
  }
}

void check_option(const Checked& c, OptionKey key, double value) {
  if (option_is_integer(key) && value != std::trunc(value))
    c.refuse(fmt::format("option '{}' is an integer", option_name(key)));
  const Range range = range_of(key);
  if (!(value >= range.low && value <= range.high))
    c.refuse(fmt::format("{} {} is out of range; accepted is {}", option_name(key), value, range.text));
}

void check_options(const Checked& c) {
  const OpRow& row = op_row(c.op.kind);
  const std::vector<OptionKey> known = all_options(row);
  for (size_t i = 0; i < c.op.options.size(); ++i) {
    const auto [key, value] = c.op.options[i];
    if (std::find(known.begin(), known.end(), key) == known.end())
      c.refuse(fmt::format("has no option '{}'", option_name(key)));
    if (i && c.op.options[i - 1].first >= key)
      c.refuse(fmt::format("option '{}' is given twice or out of order", option_name(key)));
    check_option(c, key, value);
  }
  for (OptionKey key : row.required)
    if (!c.op.has(key)) c.refuse(fmt::format("misses its option '{}'", option_name(key)));
}

}  // namespace

void check_operand_count(OpKind kind, size_t count, int line) {
  const OpRow& row = op_row(kind);
  if (count >= size_t(row.min_operands) && count <= size_t(row.max_operands)) return;
  const std::string accepted = row.min_operands == row.max_operands
                                   ? std::to_string(row.min_operands)
                                   : fmt::format("{} to {}", row.min_operands, row.max_operands);
  throw GraphError(line, fmt::format("the {}: takes {} operands, found {}", op_name(kind), accepted, count));
}

void Checked::refuse(const std::string& why) const {
  throw GraphError(op.line, fmt::format("the {}: {}", op_name(op.kind), why));
}

void Checked::mismatch(size_t i, const std::string& wanted) const {
  throw ShapeError(in(i).name, to_text(shape(i)),
                   fmt::format("{} by the {} of line {}", wanted, op_name(op.kind), op.line));
}

void Checked::columns(size_t i, int64_t wanted) const {
  if (shape(i).columns != wanted) mismatch(i, fmt::format("{} columns", wanted));
}

void Checked::rows(size_t i, int64_t wanted) const {
  if (shape(i).rows != wanted) mismatch(i, fmt::format("{} rows", wanted));
}

void Checked::elements(size_t i, int64_t wanted) const {
  if (shape(i).elements() != wanted) mismatch(i, fmt::format("{} values", wanted));
}

void Checked::columns_divide_by(size_t i, int64_t width) const {
  if (shape(i).columns % width != 0) mismatch(i, fmt::format("a multiple of {} columns", width));
}

Result check(const StepGraph& graph, const Op& op) {
  const Checked c{graph, op};
  check_operands(c);
  check_options(c);
  switch (op.kind) {
    case OpKind::Rotation:
    case OpKind::PositionScale:
    case OpKind::Attention:
    case OpKind::ShortConvolution:
    case OpKind::Shift:
    case OpKind::Decay:
    case OpKind::DeltaRule:
    case OpKind::DeltaReading:
    case OpKind::Write:
      return sequence_result(c);
    case OpKind::TopChoice:
    case OpKind::ChosenShare:
    case OpKind::ExpertProduct:
    case OpKind::ExpertBias:
    case OpKind::ExpertSum:
      return expert_result(c);
    default:
      return dense_result(c);
  }
}

}  // namespace lane::graph
