#include "author.h"

namespace lane {

using K = OptionKey;

std::string biased(Builder& builder, std::string_view base, const Weight& bias, const std::string& x) {
  return bias ? builder.let(base, OpKind::Sum, {x, builder.constant(bias)}) : x;
}

std::string apply(Builder& builder, std::string_view base, const Linear& linear, const std::string& x) {
  const std::string y = builder.let(base, OpKind::MatrixProduct, {builder.constant(linear.matrix), x});
  return biased(builder, std::string(base) + "b", linear.bias, y);
}

std::string apply(Builder& builder, std::string_view base, const Norm& norm, const std::string& x) {
  const OpKind op = norm.kind == NormKind::Rms ? OpKind::RmsNorm : OpKind::LayerNorm;
  OptionList options{{K::Epsilon, norm.epsilon}};
  if (norm.width > 0) options.push_back({K::Width, double(norm.width)});
  std::vector<std::string> operands{x};
  if (norm.gain) operands.push_back(builder.constant(norm.gain));
  if (norm.bias) operands.push_back(builder.constant(norm.bias));
  return builder.let(base, op, operands, options);
}

std::string apply(Builder& builder, std::string_view base, const std::optional<Norm>& norm, const std::string& x) {
  return norm ? apply(builder, base, *norm, x) : x;
}

std::string scaled(Builder& builder, std::string_view base, double factor, const std::string& x) {
  return factor == 1 ? x : builder.let(base, OpKind::ScaledCopy, {x}, {{K::Factor, factor}});
}

std::string slice(Builder& builder, std::string_view base, const std::string& x, int64_t heads, int64_t width,
                  int64_t from, int64_t through) {
  return builder.let(
      base, OpKind::HeadSlice, {x},
      {{K::Heads, double(heads)}, {K::Width, double(width)}, {K::From, double(from)}, {K::Through, double(through)}});
}

std::string rotated(Builder& builder, std::string_view base, const Rotary& rotary, const std::string& x) {
  OptionList options{{K::Width, double(rotary.width)},
                     {K::Turned, double(rotary.turned)},
                     {K::Base, rotary.base},
                     {K::Paired, rotary.pairing == Pairing::Neighbours ? 1.0 : 0.0}};
  if (rotary.magnitude != 1) options.push_back({K::Magnitude, rotary.magnitude});
  if (rotary.linear != 1) options.push_back({K::Linear, rotary.linear});
  if (rotary.yarn) {
    options.push_back({K::Yarn, rotary.yarn->factor});
    options.push_back({K::Original, rotary.yarn->original});
    options.push_back({K::Fast, rotary.yarn->fast});
    options.push_back({K::Slow, rotary.yarn->slow});
  }
  std::vector<std::string> operands{x, "pos"};
  if (rotary.factors) operands.push_back(builder.constant(rotary.factors));
  return builder.each(base, OpKind::Rotation, operands, options);
}

}  // namespace lane
