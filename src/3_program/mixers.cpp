#include "author.h"

namespace lane {
namespace {

using K = OptionKey;

struct Projected {
  std::string q, k, v, gate;
};

// Queries with a gate beside each head: [q | gate] a head.
void take_gate_apart(Builder& builder, const Attention& of, Projected& p) {
  const std::string both = p.q;
  p.q = slice(builder, "qs", both, of.heads, 2 * of.width, 1, of.width);
  p.gate = slice(builder, "gs", both, of.heads, 2 * of.width, of.width + 1, 2 * of.width);
}

void clamp(Builder& builder, const Attention& of, Projected& p) {
  p.q = builder.let("qc", OpKind::Clamp, {p.q}, {{K::Limit, of.clamp}});
  p.k = builder.let("kc", OpKind::Clamp, {p.k}, {{K::Limit, of.clamp}});
  p.v = builder.let("vc", OpKind::Clamp, {p.v}, {{K::Limit, of.clamp}});
}

Projected project(Builder& builder, const Attention& of, const std::string& h) {
  Projected p;
  if (of.fused) {
    const std::string all = apply(builder, "qkv", of.fused, h);
    const int64_t q = of.heads * of.width * (of.gated ? 2 : 1), k = of.groups * of.width, width = of.fused.matrix.rows;
    p.q = biased(builder, "qb", of.q.bias, slice(builder, "q", all, 1, width, 1, q));
    p.k = biased(builder, "kb", of.k.bias, slice(builder, "k", all, 1, width, q + 1, q + k));
    p.v = biased(builder, "vb", of.v.bias, slice(builder, "v", all, 1, width, q + k + 1, width));
  } else {
    p.q = apply(builder, "q", of.q, h);
    p.k = apply(builder, "k", of.k, h);
    p.v = apply(builder, "v", of.v, h);
  }
  if (of.clamp > 0) clamp(builder, of, p);
  if (of.gated) take_gate_apart(builder, of, p);
  return p;
}

void norm_heads(Builder& builder, const Attention& of, Projected& p) {
  p.q = apply(builder, "qn", of.q_norm, p.q);
  p.k = apply(builder, "kn", of.k_norm, p.k);
}

OptionList attention_options(const Attention& of) {
  OptionList options{
      {K::Heads, double(of.heads)}, {K::Groups, double(of.groups)}, {K::Width, double(of.width)}, {K::Scale, of.scale}};
  if (of.value_width != of.width) options.push_back({K::ValueWidth, double(of.value_width)});
  if (of.window > 0) options.push_back({K::Window, double(of.window)});
  if (of.score_cap > 0) options.push_back({K::Limit, of.score_cap});
  return options;
}

}  // namespace

std::string say_mixer(Builder& builder, const Attention& of, const std::string& h, int64_t ctx) {
  Projected p = project(builder, of, h);
  if (!of.norm_after_rotation) norm_heads(builder, of, p);
  if (of.rotary) {
    p.q = rotated(builder, "qr", *of.rotary, p.q);
    p.k = rotated(builder, "kr", *of.rotary, p.k);
  }
  if (of.norm_after_rotation) norm_heads(builder, of, p);
  if (of.temperature)
    p.q = builder.each("qt", OpKind::PositionScale, {p.q, "pos"},
                       {{K::Factor, of.temperature->factor}, {K::Length, double(of.temperature->length)}});
  const std::string keys = builder.carried("keys", 1, ctx, of.groups * of.width);
  const std::string values = builder.carried("vals", 1, ctx, of.groups * of.value_width);
  builder.write(keys, p.k);
  builder.write(values, p.v);
  std::vector<std::string> operands{p.q, keys, values, "pos"};
  if (of.sinks) operands.push_back(builder.constant(of.sinks));
  std::string a = builder.each("a", OpKind::Attention, operands, attention_options(of));
  a = scaled(builder, "as", of.value_scale, a);
  if (of.gated) a = builder.let("ag", OpKind::SigmoidGate, {p.gate, a});
  return apply(builder, "o", of.output, a);
}

}  // namespace lane
