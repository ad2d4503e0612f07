// What an op may be given and what it computes. Private to this pass: lift asks it for every statement, verify again.
#pragma once
#include <string>

#include "lane/graph.h"

namespace lane::graph {

struct Result {
  Shape shape;
  bool integers = false;
};

/// Checks operands, roles, options and shapes of `op` over the values of `graph`; op.result is not looked at. Throws
/// GraphError or ShapeError with the op's line.
Result check(const StepGraph& graph, const Op& op);

/// Throws GraphError where an op of this kind does not take `count` operands.
void check_operand_count(OpKind kind, size_t count, int line);

/// One op under check: its operands by place, and how to refuse it.
struct Checked {
  const StepGraph& graph;
  const Op& op;

  const Value& in(size_t i) const { return graph.value(op.operands.at(i)); }
  const Shape& shape(size_t i) const { return in(i).shape; }
  bool given(size_t i) const { return i < op.operands.size(); }

  [[noreturn]] void refuse(const std::string& why) const;
  /// Operand `i` should be `wanted`.
  [[noreturn]] void mismatch(size_t i, const std::string& wanted) const;
  void columns(size_t i, int64_t wanted) const;
  void rows(size_t i, int64_t wanted) const;
  void elements(size_t i, int64_t wanted) const;
  void columns_divide_by(size_t i, int64_t width) const;
};

// The shape rules, by kind of op.
Result dense_result(const Checked& c);
Result sequence_result(const Checked& c);
Result expert_result(const Checked& c);

}  // namespace lane::graph
