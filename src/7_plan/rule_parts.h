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

/// The residual rules of ops that add one where they store their result: a norm, a sum of experts.
inline bool takes_residual(const RuleContext& c) {
  const StepOp& n = c.op("n");
  return absent(n.parts.residual) && c.value("r").kind == Ref::Kind::Array && c.value("r").shape == n.result.shape;
}
/// The op labelled `op` with the residual r, in place of the sum s.
inline StepOp with_residual_of(const RuleContext& c, std::string_view op) {
  StepOp n = c.op(op);
  n.parts.residual = c.value("r");
  n.result = c.op("s").result;
  return n;
}
inline StepOp taking_residual(const RuleContext& c) { return with_residual_of(c, "n"); }

/// The product p, which quantizes its own activations.
inline StepOp with_quantization(const RuleContext& c) {
  StepOp p = c.op("p");
  p.parts.prepares = true;
  return p;
}

}  // namespace lane
