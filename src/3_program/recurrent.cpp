// Mixers whose state does not grow: the short convolution and the gated delta rule.
#include <cmath>

#include "author.h"

namespace lane {
namespace {

using K = OptionKey;

// Convolves each channel over the ring's rows and x, then lets the ring take x in.
std::string say_convolution(Builder& builder, std::string_view base, int64_t taps, int64_t channels,
                            const Weight& kernel, const std::string& x) {
  const std::string ring = builder.carried("ring", 1, taps - 1, channels);
  const std::string y = builder.each(base, OpKind::ShortConvolution, {ring, x, builder.constant(kernel)});
  builder.update(ring, OpKind::Shift, {ring, x});
  return y;
}

struct DeltaProjections {
  std::string qkv, gate;
};

// Each key head's rows are its query, its key, its value heads' values and their gates; or each kind has its own rows.
DeltaProjections say_delta_projections(Builder& builder, const DeltaRule& of, const std::string& h) {
  if (!of.interleaved) return {apply(builder, "qkv", of.qkv, h), apply(builder, "z", of.gate, h)};
  const int64_t width = of.width, values = of.heads / of.groups * width, all = 2 * width + 2 * values;
  const std::string x = apply(builder, "qkvz", of.interleaved, h);
  const auto part = [&](std::string_view base, int64_t from, int64_t size) {
    return slice(builder, base, x, of.groups, all, from + 1, from + size);
  };
  const std::string q = part("qi", 0, width), k = part("ki", width, width), v = part("vi", 2 * width, values);
  const std::string qk = builder.let("qk", OpKind::Join, {q, k});
  return {builder.let("qkv", OpKind::Join, {qk, v}), part("z", 2 * width + values, values)};
}

struct DeltaInputs {
  std::string q, k, v;
};

DeltaInputs say_delta_inputs(Builder& builder, const DeltaRule& of, const std::string& qkv) {
  const int64_t keys = of.groups * of.width, all = 2 * keys + of.heads * of.width;
  const std::string c = builder.let("cs", OpKind::Silu, {say_convolution(builder, "c", of.taps, all, of.kernel, qkv)});
  const OptionList unit{{K::Width, double(of.width)}, {K::Epsilon, of.epsilon}};
  DeltaInputs in;
  const std::string q = builder.let("qn", OpKind::LengthNorm, {slice(builder, "q", c, 1, all, 1, keys)}, unit);
  in.q = scaled(builder, "qs", 1 / std::sqrt(double(of.width)), q);
  in.k = builder.let("kn", OpKind::LengthNorm, {slice(builder, "k", c, 1, all, keys + 1, 2 * keys)}, unit);
  in.v = slice(builder, "v", c, 1, all, 2 * keys + 1, all);
  return in;
}

struct DeltaRates {
  std::string decay, beta;
};

DeltaRates say_delta_rates(Builder& builder, const DeltaRule& of, const std::string& h) {
  std::string beta, alpha;
  if (of.beta_alpha) {  // each key head: the betas of its value heads, then their alphas
    const int64_t share = of.heads / of.groups;
    const std::string both = apply(builder, "ba", of.beta_alpha, h);
    beta = slice(builder, "b", both, of.groups, 2 * share, 1, share);
    alpha = slice(builder, "al", both, of.groups, 2 * share, share + 1, 2 * share);
  } else {
    beta = apply(builder, "b", of.beta, h);
    alpha = apply(builder, "al", of.alpha, h);
  }
  const std::string decay =
      builder.let("dec", OpKind::Decay, {alpha, builder.constant(of.time_bias), builder.constant(of.rate)});
  return {decay, builder.let("bs", OpKind::Sigmoid, {beta})};
}

}  // namespace

std::string say_mixer(Builder& builder, const ShortConvolution& of, const std::string& h, int64_t) {
  const int64_t n = of.channels;
  const std::string bcx = apply(builder, "bcx", of.in, h);
  const std::string b = slice(builder, "b", bcx, 1, 3 * n, 1, n);
  const std::string c = slice(builder, "c", bcx, 1, 3 * n, n + 1, 2 * n);
  const std::string in = slice(builder, "xs", bcx, 1, 3 * n, 2 * n + 1, 3 * n);
  const std::string z = builder.let("z", OpKind::Product, {b, in});
  const std::string s = say_convolution(builder, "s", of.taps, n, of.kernel, z);
  return apply(builder, "o", of.out, builder.let("cz", OpKind::Product, {c, s}));
}

std::string say_mixer(Builder& builder, const DeltaRule& of, const std::string& h, int64_t) {
  const OptionList options{{K::Heads, double(of.heads)},
                           {K::Groups, double(of.groups)},
                           {K::Width, double(of.width)},
                           {K::Tiled, of.tiled ? 1.0 : 0.0}};
  const auto [qkv, gate] = say_delta_projections(builder, of, h);
  const DeltaInputs in = say_delta_inputs(builder, of, qkv);
  const DeltaRates rates = say_delta_rates(builder, of, h);
  const std::string memory = builder.carried("memory", of.heads, of.width, of.width);
  const std::string read =
      builder.each("a", OpKind::DeltaReading, {memory, in.q, in.k, in.v, rates.decay, rates.beta}, options);
  builder.update(memory, OpKind::DeltaRule, {memory, in.k, in.v, rates.decay, rates.beta}, options);
  const std::string normed = apply(builder, "an", of.norm, read);
  return apply(builder, "o", of.out, builder.let("ag", OpKind::SiluGate, {gate, normed}));
}

}  // namespace lane
