// Pass 5: a syntax tree lifted into a graph. Every statement is an op with operands, options and a result shape, or the
// compile is refused by name. From here on the architecture is no longer known: only ops are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lane/logos.h"
#include "lane/ops.h"

namespace lane {

using ValueId = int;
constexpr ValueId kNoValue = -1;

/// Constant: floats, in the sidecar or widened while loading. Quantized: rows in the checkpoint's block format
/// (whatever that is: F32 too). Carried: state that lives from step to step, zero at start. Input: integers. Computed:
/// an op's result.
enum class ValueKind { Constant, Quantized, Carried, Input, Computed };

/// `experts` matrices of `rows` by `columns`, columns contiguous. A vector has one row. An Input has columns = how many
/// integers.
struct Shape {
  int64_t experts = 1, rows = 1, columns = 1;
  int64_t elements() const { return experts * rows * columns; }
  bool operator==(const Shape&) const = default;
};
std::string to_text(const Shape& shape);  // "4 x 32 x 64", leading ones left out

struct Value {
  std::string name;
  ValueKind kind = ValueKind::Computed;
  Shape shape;
  bool integers = false;  // inputs, `greatest` and `top choice`: int32; everything else is real
  int line = 0;           // where it is bound
  int producer = -1;      // index of the op that computes it; -1: declared
};

/// Rows of a matrix or of carried state: 1-based `base + offset` (base: an Input, or kNoValue for a constant place).
struct Place {
  ValueId base = kNoValue;
  int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

struct Op {
  OpKind kind = OpKind::Sum;
  std::vector<ValueId> operands;  // as the phrase lists them; lookup: matrix, ids; Write: the Carried value, the rows
  std::vector<std::pair<OptionKey, double>> options;  // in the table's order; absent optional ones are absent here
  /// Computed value it binds; for Write, Shift and DeltaRule (whose text is a `Set`): the Carried value it changes.
  ValueId result = kNoValue;
  std::optional<Place> from, through;  // RowLookup, RowSlice, Write
  int line = 0;
  bool has(OptionKey key) const;
  double option(OptionKey key, double otherwise = 0) const;
  int64_t integer(OptionKey key, int64_t otherwise = 0) const;
};

/// A step as ops, in the order of the text. Values are in order of their first mention.
struct StepGraph {
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<ValueId> outputs;  // what `Show` names, in order
  const Value& value(ValueId id) const { return values[size_t(id)]; }
  ValueId find(std::string_view name) const;  // kNoValue where absent
};

/// Throws GraphError or ShapeError, with the line. A place among a phrase's operands becomes an op of its own before
/// it. Wherever an op takes a position, row r of a block stands at pos + r.
StepGraph lift(const SyntaxTree& tree);
void verify(const StepGraph& graph);          // throws InternalError
std::string to_text(const StepGraph& graph);  // one line a value and an op, with shapes

}  // namespace lane
