#include "author.h"
#include "lane/error.h"

namespace lane {
namespace {

using K = OptionKey;

OpKind gate_op(Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return OpKind::SiluGate;
    case Activation::Gelu:
      return OpKind::GeluGate;
    case Activation::Clamped:
      return OpKind::ClampedGate;
    case Activation::SquareRelu:
      break;
  }
  throw InternalError("no gate phrase for an activation");
}

OpKind plain_op(Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return OpKind::Silu;
    case Activation::Gelu:
      return OpKind::Gelu;
    case Activation::SquareRelu:
      return OpKind::SquareRelu;
    case Activation::Clamped:
      break;
  }
  throw InternalError("no phrase for an activation without a gate");
}

// Names of a feed-forward's values: "g", or "sg" for the shared expert's.
std::string prefixed(std::string_view prefix, std::string_view base) { return std::string(prefix) + std::string(base); }

std::string say_dense(Builder& builder, std::string_view prefix, const Dense& of, const std::string& f) {
  std::string m;
  if (!of.gated) {
    m = builder.let(prefixed(prefix, "m"), plain_op(of.activation), {apply(builder, prefixed(prefix, "u"), of.up, f)});
  } else if (of.fused) {
    const std::string both = apply(builder, prefixed(prefix, "gu"), of.up, f);
    const std::string gate = slice(builder, prefixed(prefix, "g"), both, 1, 2 * of.width, 1, of.width);
    const std::string up = slice(builder, prefixed(prefix, "u"), both, 1, 2 * of.width, of.width + 1, 2 * of.width);
    m = builder.let(prefixed(prefix, "m"), gate_op(of.activation), {gate, up});
  } else {
    const std::string gate = apply(builder, prefixed(prefix, "g"), of.gate, f);
    const std::string up = apply(builder, prefixed(prefix, "u"), of.up, f);
    m = builder.let(prefixed(prefix, "m"), gate_op(of.activation), {gate, up});
  }
  return apply(builder, prefixed(prefix, "d"), of.down, m);
}

// The chosen experts' blocks of `linear`, on one row for all of them or a block each.
std::string say_chosen(Builder& builder, std::string_view base, const Linear& linear, const std::string& x,
                       const std::string& chosen) {
  const std::string y = builder.let(base, OpKind::ExpertProduct, {builder.constant(linear.matrix), x, chosen});
  if (!linear.bias) return y;
  return builder.let(std::string(base) + "b", OpKind::ExpertBias, {builder.constant(linear.bias), y, chosen});
}

struct Routing {
  std::string chosen, share;
};

Routing say_routing(Builder& builder, const Experts& of, const std::string& f) {
  const std::string r = apply(builder, "r", of.router, f);
  OptionList options{{K::Count, double(of.used)}};
  if (of.groups > 1) {
    options.push_back({K::Groups, double(of.groups)});
    options.push_back({K::Kept, double(of.kept)});
  }
  // Alone, scores choose as their probabilities would; a bias and groups are for probabilities.
  if (of.selection_bias || of.groups > 1) options.push_back({K::By, double(of.gating)});
  std::vector<std::string> operands{r};
  if (of.selection_bias) operands.push_back(builder.constant(of.selection_bias));
  const std::string chosen = builder.let("e", OpKind::TopChoice, operands, options);
  return {
      chosen,
      builder.let("w", OpKind::ChosenShare, {r, chosen},
                  {{K::By, double(of.gating)}, {K::Normalised, of.normalised ? 1.0 : 0.0}, {K::Factor, of.factor}})};
}

std::string say_experts(Builder& builder, const Experts& of, const std::string& f, const std::string& chosen) {
  OptionList options;
  if (of.activation == Activation::Clamped) options = {{K::Limit, of.limit}, {K::Slope, of.slope}};
  std::string gate, up;
  if (of.fused) {
    const std::string both = say_chosen(builder, "gu", of.up, f, chosen);
    gate = slice(builder, "g", both, of.used, 2 * of.width, 1, of.width);
    up = slice(builder, "u", both, of.used, 2 * of.width, of.width + 1, 2 * of.width);
  } else {
    gate = say_chosen(builder, "g", of.gate, f, chosen);
    up = say_chosen(builder, "u", of.up, f, chosen);
  }
  const std::string m = builder.let("m", gate_op(of.activation), {gate, up}, options);
  return say_chosen(builder, "d", of.down, m, chosen);
}

}  // namespace

std::string say_feed_forward(Builder& builder, const Dense& of, const std::string& f) {
  return say_dense(builder, "", of, f);
}

std::string say_feed_forward(Builder& builder, const Experts& of, const std::string& f) {
  const Routing routing = say_routing(builder, of, f);
  const std::string d = say_experts(builder, of, f, routing.chosen);
  const std::string sum = builder.let("es", OpKind::ExpertSum, {d, routing.share});
  if (!of.shared) return sum;
  std::string shared = say_dense(builder, "s", *of.shared, f);
  if (of.shared_gate) {
    const std::string gate = builder.let("sgs", OpKind::Sigmoid, {apply(builder, "sgr", of.shared_gate, f)});
    shared = builder.let("sdg", OpKind::Product, {shared, gate});
  }
  return builder.let("et", OpKind::Sum, {sum, shared});
}

}  // namespace lane
