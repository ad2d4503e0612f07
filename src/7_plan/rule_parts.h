// What the rules' guards and builders share.
#pragma once
#include "7_plan/activations.h"
#include "7_plan/rules.h"

namespace lane {

inline bool absent(const Ref& ref) { return ref.kind == Ref::Kind::None; }

/// How a product sees its activations.
inline ActivationKind kind_of(const RuleContext& c, const StepOp& product) {
  return activation_kind(c.options, *c.weights.placements[size_t(product.operands[0].index)].format);
}

/// An op whose operands are the fused op's: all but the first `kept`.
inline StepOp member(const StepOp& op, size_t kept = 0) {
  StepOp m = op;
  m.operands.resize(kept);
  return m;
}

}  // namespace lane
