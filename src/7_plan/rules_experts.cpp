// Rules of routed experts.
#include <algorithm>
#include <array>

#include "7_plan/rule_parts.h"

namespace lane {
namespace {

// routing: the choice and the shares of the chosen. Operands: what is chosen by, its bias, what is shared by; members:
// the choice and the shares.

bool routes(const RuleContext& c) { return c.value("E") == c.op("e").result; }
StepOp routed(const RuleContext& c, const Ref& bias) {
  StepOp fused = c.op("s");
  fused.fused = Fused::Routing;
  fused.result = {};
  fused.operands = {c.value("r"), bias, c.value("t")};
  fused.members = {member(c.op("e")), member(c.op("s"))};
  return fused;
}
StepOp routed_plainly(const RuleContext& c) { return routed(c, {}); }
StepOp routed_with_bias(const RuleContext& c) { return routed(c, c.value("b")); }

// expert groups: several tokens' choices by expert. A product keeps the bits of each choice.

bool groups_choices(const RuleContext& c) {
  const StepOp& p = c.op("p");
  const Shape row{1, 1, p.operands[0].shape.columns};
  return c.value("e").shape.rows > 1 && !p.parts.grouped &&
         prepared_bytes(kind_of(c, p), row) <= grouped_shared_bytes(c.chip);
}
StepOp with_groups(const RuleContext& c) {
  StepOp p = c.op("p");
  p.parts.grouped = true;
  return p;
}

// expert bias, expert gate, quantize: products of chosen matrices with what follows. A block reads one activation row,
// so preparing it is always possible where it fits; a group's rows are quantized by a launch before.

bool can_prepare_row(const RuleContext& c, const StepOp& product) {
  const ActivationKind kind = kind_of(c, product);
  if (kind == ActivationKind::Floats || product.parts.grouped) return true;
  const Shape row{1, 1, product.operands[0].shape.columns};
  return c.options.fuse_quant && fits_prepared(kind, row);
}

bool adds_expert_bias(const RuleContext& c) {
  return c.value("b").kind == Ref::Kind::Weight && absent(c.op("p").parts.bias) && can_prepare_row(c, c.op("p"));
}
StepOp with_expert_bias(const RuleContext& c) {
  StepOp p = c.op("p");
  p.parts.bias = c.value("b");
  p.result = c.op("s").result;
  return p;
}

bool gates_experts(const RuleContext& c) {
  const StepOp &g = c.op("g"), &u = c.op("u");
  return kind_of(c, g) == kind_of(c, u) && can_prepare_row(c, g);
}
StepOp gated_experts(const RuleContext& c) {
  StepOp fused = c.op("a");
  fused.fused = Fused::ExpertGate;
  fused.operands = {c.value("x"), c.value("e")};
  fused.members = {member(c.op("g"), 1), member(c.op("u"), 1)};
  return fused;
}

bool quantizes_row(const RuleContext& c) {
  const StepOp& p = c.op("p");
  return !p.parts.any() && kind_of(c, p) != ActivationKind::Floats && can_prepare_row(c, p);
}

constexpr std::array kRules = {
    Rule{"routing", "e:top choice(r); s:chosen share(t, E)", routes, routed_plainly, "route", "a launch"},
    Rule{"routing", "e:top choice(r, b); s:chosen share(t, E)", routes, routed_with_bias, "route", "a launch"},
    Rule{"expert groups", "p:expert product(W, x, e)", groups_choices, with_groups, "grouped_product",
         "an expert's weights read again for each token that chose it"},
    Rule{"expert bias", "s:expert bias(b, p:expert product(W, x, e), e)", adds_expert_bias, with_expert_bias,
         "chosen_product", "a launch, and the product's result written and read"},
    Rule{"expert gate", "a:gate(g:expert product(G, x, e), u:expert product(U, x, e))", gates_experts, gated_experts,
         "chosen_gated_product", "two launches, and both products' results written and read"},
    Rule{"expert residual", "s:elementwise sum(n:expert sum(d, w), r)", takes_residual, taking_residual, "expert_sum",
         "a launch, and the sum written and read"},
    Rule{"quantize", "p:expert product(W, x, e)", quantizes_row, with_quantization, "chosen_product",
         "a launch, and the quantized array written and read"},
};

}  // namespace

std::span<const Rule> expert_rules() { return kRules; }

}  // namespace lane
