// A graph is sound where each op, checked again, computes the shape its value has, from values bound before it.
#include <fmt/format.h>

#include <unordered_set>

#include "check.h"
#include "lane/error.h"

namespace lane {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw InternalError("step graph: " + what);
}

bool changes_state(OpKind kind) { return kind == OpKind::Write || kind == OpKind::Shift || kind == OpKind::DeltaRule; }

void verify_values(const StepGraph& graph) {
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    const bool computed = v.kind == ValueKind::Computed;
    require(names.insert(v.name).second, fmt::format("'{}' is bound twice", v.name));
    require(v.shape.experts >= 1 && v.shape.rows >= 1 && v.shape.columns >= 1, fmt::format("'{}' is empty", v.name));
    require(computed == (v.producer >= 0), fmt::format("'{}' is computed by an op or declared, not both", v.name));
    require(!computed || (v.producer < int(graph.ops.size()) && graph.ops[size_t(v.producer)].result == ValueId(i)),
            fmt::format("'{}' is not what its producer computes", v.name));
    require(computed || v.integers == (v.kind == ValueKind::Input),
            fmt::format("'{}': of declared values, Inputs alone are integers", v.name));
  }
}

void verify_op(const StepGraph& graph, int index) {
  const Op& op = graph.ops[size_t(index)];
  const auto known = [&](ValueId id) {
    return id >= 0 && id < int(graph.values.size()) && graph.value(id).producer < index;
  };
  for (ValueId id : op.operands) require(known(id), fmt::format("op {} reads what no earlier op computes", index));
  for (const auto& place : {op.from, op.through})
    if (place && place->base != kNoValue) require(known(place->base), fmt::format("op {} counts from no value", index));
  require(op.result >= 0 && op.result < int(graph.values.size()), fmt::format("op {} has no result", index));
  const Value& result = graph.value(op.result);
  if (changes_state(op.kind)) {
    require(!op.operands.empty() && op.operands[0] == op.result,
            fmt::format("op {} changes '{}', which is not its state", index, result.name));
  } else {
    require(result.producer == index,
            fmt::format("op {} computes '{}', whose producer is another", index, result.name));
  }
  const graph::Result expected = graph::check(graph, op);
  require(
      expected.shape == result.shape && expected.integers == result.integers,
      fmt::format("'{}' is {}; op {} computes {}", result.name, to_text(result.shape), index, to_text(expected.shape)));
}

}  // namespace

void verify(const StepGraph& graph) {
  verify_values(graph);
  try {
    for (size_t i = 0; i < graph.ops.size(); ++i) verify_op(graph, int(i));
  } catch (const InternalError&) {
    throw;
  } catch (const Error& e) {  // an op that could not have been lifted
    throw InternalError(std::string("step graph: ") + e.what());
  }
  require(!graph.outputs.empty(), "no output");
  for (ValueId id : graph.outputs)
    require(id >= 0 && id < int(graph.values.size()) && graph.value(id).kind == ValueKind::Computed,
            "an output is not computed");
}

}  // namespace lane
