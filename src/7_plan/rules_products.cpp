// Rules that gather what stands around products of matrices, and norms.
#include <algorithm>
#include <array>

#include "7_plan/int8_tiles.h"
#include "7_plan/rule_parts.h"
#include "7_plan/streamed.h"

namespace lane {
namespace {

/// Whether a fused product may read this product's activations: as they are in memory, or few enough that every block
/// prepares them all.
bool can_prepare(const RuleContext& c, const StepOp& product, const Ref& x, bool normed) {
  if (is_streamed(c.weights, product)) return !normed || streams_norm(x.shape.columns);
  const ActivationKind kind = kind_of(c, product);
  if (kind == ActivationKind::Floats && !normed) return true;
  if (kind != ActivationKind::Floats && !c.options.fuse_quant) return false;
  return fits_prepared(kind, x.shape);
}

/// Or such a product may read activations that a launch before it quantizes, on tensor cores.
bool on_tensor_cores(const RuleContext& c, const StepOp& product, const Ref& x) {
  return on_int8_tiles(c.weights, c.options, c.chip, product, x.shape.rows);
}

/// Products of repacked matrices have no limit: several tokens' vectors are quantized by a launch of their own.
bool few_tokens(const RuleContext& c, const StepOp& product, const Ref& x) {
  return x.shape.rows <= kMostPreparedTokens || is_streamed(c.weights, product);
}

// bias and residual: the product adds them where it stores its sums.

bool adds_where_it_stores(const RuleContext& c, const StepOp& product, const Ref& x) {
  return can_prepare(c, product, x, false) || on_tensor_cores(c, product, x);
}
bool adds_bias(const RuleContext& c) {
  const StepOp& p = c.op("p");
  return c.value("b").kind == Ref::Kind::Weight && absent(p.parts.bias) && absent(p.parts.residual) &&
         adds_where_it_stores(c, p, c.value("x"));
}
StepOp with_bias(const RuleContext& c) {
  StepOp p = c.op("p");
  p.parts.bias = c.value("b");
  p.result = c.op("s").result;
  return p;
}

bool adds_residual(const RuleContext& c) {
  const StepOp& p = c.op("p");
  return c.value("r").kind == Ref::Kind::Array && c.value("r").shape == p.result.shape && absent(p.parts.residual) &&
         adds_where_it_stores(c, p, c.value("x"));
}
StepOp with_residual(const RuleContext& c) { return with_residual_of(c, "p"); }

// gate: both products and the gate of their results in one launch.

bool gates(const RuleContext& c) {
  const StepOp &g = c.op("g"), &u = c.op("u");
  if ((is_streamed(c.weights, g) || is_streamed(c.weights, u)) && !streams_gate(c, g, u, c.op("a"))) return false;
  const Ref& x = c.value("x");
  if (g.parts.any() || u.parts.any() || kind_of(c, g) != kind_of(c, u)) return false;
  if (on_tensor_cores(c, g, x) && on_tensor_cores(c, u, x)) return true;
  return few_tokens(c, g, x) && can_prepare(c, g, x, false);
}
StepOp gated(const RuleContext& c) {
  StepOp fused = c.op("a");
  fused.fused = Fused::GatedProduct;
  fused.operands = {c.value("x")};
  fused.members = {member(c.op("g"), 1), member(c.op("u"), 1)};
  return fused;
}

// matrices: products of one input in one launch.

bool shares_input(const RuleContext& c, std::initializer_list<std::string_view> labels) {
  const StepOp& first = c.op("p");
  std::vector<const StepOp*> products;
  for (const std::string_view label : labels) products.push_back(&c.op(label));
  const bool streamed =
      std::any_of(products.begin(), products.end(), [&](const StepOp* p) { return is_streamed(c.weights, *p); });
  if (streamed && !streams_together(c, products)) return false;
  return few_tokens(c, first, c.value("x")) && can_prepare(c, first, c.value("x"), false) &&
         std::all_of(products.begin(), products.end(), [&](const StepOp* p) {
           return absent(p->parts.residual) && absent(p->parts.norm) && kind_of(c, *p) == kind_of(c, first);
         });
}
StepOp together(const RuleContext& c, std::initializer_list<std::string_view> labels) {
  StepOp fused = c.op("p");
  fused.fused = Fused::Products;
  fused.parts = {};
  fused.operands = {c.value("x")};
  fused.result = {};
  for (const std::string_view label : labels) fused.members.push_back(member(c.op(label), 1));
  return fused;
}
bool three_share(const RuleContext& c) { return shares_input(c, {"p", "q", "r"}); }
StepOp three_together(const RuleContext& c) { return together(c, {"p", "q", "r"}); }
bool two_share(const RuleContext& c) { return shares_input(c, {"p", "q"}); }
StepOp two_together(const RuleContext& c) { return together(c, {"p", "q"}); }

// norm: every block of a product norms the input itself.

bool norms(const RuleContext& c) {
  const StepOp &n = c.op("n"), &p = c.op("p");
  const StepOp& product = p.members.empty() ? p : p.members.front();
  const Ref& x = c.value("x");
  return !n.has(OptionKey::Width) && c.value("w").kind == Ref::Kind::Weight && absent(p.parts.norm) &&
         few_tokens(c, product, x) && can_prepare(c, product, x, true);
}
StepOp with_norm(const RuleContext& c) {
  StepOp p = c.op("p");
  p.parts.norm = c.value("w");
  p.parts.epsilon = c.op("n").option(OptionKey::Epsilon);
  p.operands.back() = c.value("x");
  return p;
}

// quantize: every block of a product quantizes the input itself.

bool quantizes(const RuleContext& c) {
  const StepOp& p = c.op("p");
  return !is_streamed(c.weights, p) && !p.parts.any() && kind_of(c, p) != ActivationKind::Floats &&
         can_prepare(c, p, c.value("x"), false);
}

// choice: the blocks of the head's product find the greatest of their rows.

bool finds_greatest(const RuleContext& c) {
  const StepOp& p = c.op("p");
  return is_streamed(c.weights, p) && c.value("x").shape.rows == 1 && absent(p.parts.residual);
}
StepOp with_choice(const RuleContext& c) {
  StepOp fused = c.op("p");
  fused.fused = Fused::Choice;
  fused.members = {member(c.op("p")), member(c.op("g"))};
  fused.members[0].parts = {};
  fused.result = {};
  return fused;
}

// post norm: every block of a product makes the sum that it reads, of a norm and what the layer carries on.

bool makes_sum(const RuleContext& c) {
  const StepOp &n = c.op("n"), &p = c.op("p");
  const bool gated = p.fused == Fused::GatedProduct;
  const bool streamed = p.fused == Fused::Choice ? is_streamed(c.weights, p) : is_streamed(c.weights, p.members[0]);
  return streamed && n.result.shape.rows == 1 && !n.has(OptionKey::Width) && !absent(n.parts.residual) &&
         c.value("w").kind == Ref::Kind::Weight && absent(p.parts.post) &&
         streams_post_norm(n.result.shape.columns, gated);
}
StepOp with_sum(const RuleContext& c) {
  const StepOp& n = c.op("n");
  StepOp p = c.op("p");
  p.parts.post = c.value("w");
  p.parts.post_epsilon = n.option(OptionKey::Epsilon);
  p.parts.carried = n.parts.residual;
  p.parts.sum = n.result;
  p.operands.back() = c.value("x");
  return p;
}

// chain: a product and what reads its result, in one launch whose blocks hand the result on. Of the next layer's q, k
// and v only where it is asked for: their blocks wait for all of a long product, which takes longer
// (docs/performance.md).

bool links(const RuleContext& c) { return chains(c, c.op("p"), c.op("next")); }
StepOp chained(const RuleContext& c) {
  StepOp fused = c.op("next");
  fused.fused = Fused::Chain;
  fused.parts = {};
  fused.operands = {};
  fused.result = {};
  fused.members = {c.op("p"), c.op("next")};
  return fused;
}

constexpr std::array kRules = {
    Rule{"bias", "s:elementwise sum(p:matrix product(W, x), b)", adds_bias, with_bias, "product",
         "a launch, and the product's result written and read"},
    Rule{"residual", "s:elementwise sum(p:matrix product(W, x), r)", adds_residual, with_residual, "product",
         "a launch, and the product's result written and read"},
    Rule{"norm residual", "s:elementwise sum(n:rms norm(x, w), r)", takes_residual, taking_residual, "rms_norm",
         "a launch, and the norm's result written and read"},
    Rule{"gate", "a:gate(g:matrix product(G, x), u:matrix product(U, x))", gates, gated, "gated_product",
         "two launches, and both products' results written and read"},
    Rule{"matrices", "p:matrix product(P, x); q:matrix product(Q, x); r:matrix product(R, x)", three_share,
         three_together, "products", "two launches"},
    Rule{"matrices", "p:matrix product(P, x); q:matrix product(Q, x)", two_share, two_together, "products", "a launch"},
    Rule{"norm", "p:matrix product(W, n:rms norm(x, w))", norms, with_norm, "product",
         "a launch, and the normed array written and read"},
    Rule{"norm", "p:products(n:rms norm(x, w))", norms, with_norm, "products",
         "a launch, and the normed array written and read"},
    Rule{"norm", "p:gated product(n:rms norm(x, w))", norms, with_norm, "gated_product",
         "a launch, and the normed array written and read"},
    Rule{"quantize", "p:matrix product(W, x)", quantizes, with_quantization, "product",
         "a launch, and the quantized array written and read"},
    Rule{"choice", "p:matrix product(W, x) -> logits; g:greatest(logits)", finds_greatest, with_choice,
         "streamed_choice", "a launch, and the logits read"},
    Rule{"post norm", "n:rms norm(x, w) -> y; p:products(y)", makes_sum, with_sum, "post_normed_products", "a launch"},
    Rule{"post norm", "n:rms norm(x, w) -> y; p:gated product(y)", makes_sum, with_sum, "post_normed_gated_product",
         "a launch"},
    Rule{"post norm", "n:rms norm(x, w) -> y; p:choice(W, y)", makes_sum, with_sum, "post_normed_choice", "a launch"},
    Rule{"chain", "p:matrix product(W, x) -> y; next:gated product(y)", links, chained, "chained_gated_product",
         "a launch"},
    Rule{"chain matrices", "p:matrix product(W, x) -> y; next:products(y)", links, chained, "chained_products",
         "a launch", true},
};

}  // namespace

std::span<const Rule> product_rules() { return kRules; }

}  // namespace lane
