#include "author.h"

#include <fmt/format.h>

namespace lane {
namespace {

using K = OptionKey;

// A sublayer's output as it joins the residual stream.
std::string settled(Builder& builder, std::string_view base, const std::optional<Norm>& post_norm, double scale,
                    const std::string& x) {
  const std::string normed = apply(builder, std::string(base) + "n", post_norm, x);
  return scaled(builder, std::string(base) + "s", scale, normed);
}

// Returns the name of the layer's output, x_<index + 1>.
std::string say_layer(Builder& builder, const ModelSpec& spec, size_t index, const std::string& x) {
  const Layer& layer = spec.layers[index];
  builder.enter_layer(int64_t(index));
  const std::string h = apply(builder, "h", layer.mixer_norm, x);
  std::string o = std::visit([&](const auto& mixer) { return say_mixer(builder, mixer, h, spec.ctx); }, layer.mixer);
  o = settled(builder, "o", layer.mixer_post_norm, spec.residual_scale, o);
  const std::string y = builder.let("y", OpKind::Sum, {x, o});
  const std::string f = layer.parallel ? h : apply(builder, "f", layer.ffn_norm, y);
  std::string d = std::visit([&](const auto& of) { return say_feed_forward(builder, of, f); }, layer.feed_forward);
  d = settled(builder, "d", layer.ffn_post_norm, spec.residual_scale, d);
  builder.enter_layer(int64_t(index) + 1);
  return builder.let("x", OpKind::Sum, {y, d});
}

// What stands between the head's product and the logits. The last of them is named so.
void say_logits(Builder& builder, const ModelSpec& spec, const std::string& n) {
  struct Step {
    OpKind op;
    std::vector<std::string> operands;  // after the value itself
    OptionList options;
  };
  std::vector<Step> steps;
  if (spec.head.bias) steps.push_back({OpKind::Sum, {builder.constant(spec.head.bias)}, {}});
  if (spec.tokens < spec.rows)  // padding rows are not of the vocabulary: never shown, never chosen
    steps.push_back({OpKind::HeadSlice,
                     {},
                     {{K::Heads, 1}, {K::Width, double(spec.rows)}, {K::From, 1}, {K::Through, double(spec.tokens)}}});
  if (spec.logit_scale != 1) steps.push_back({OpKind::ScaledCopy, {}, {{K::Factor, spec.logit_scale}}});
  if (spec.logit_cap > 0) steps.push_back({OpKind::Softcap, {}, {{K::Limit, spec.logit_cap}}});

  std::string value =
      builder.let(steps.empty() ? "logits" : "z", OpKind::MatrixProduct, {builder.constant(spec.head.matrix), n});
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<std::string> operands{value};
    operands.insert(operands.end(), steps[i].operands.begin(), steps[i].operands.end());
    const bool at_end = i + 1 == steps.size();
    value = builder.let(at_end ? "logits" : fmt::format("z_{}", i + 1), steps[i].op, operands, steps[i].options);
  }
}

}  // namespace

ModelProgram author(const ModelSpec& spec) {
  Builder builder;
  const std::string table = builder.constant(spec.embedding);
  std::string x = builder.lookup(spec.embedding_scale == 1 ? "x_0" : "e", table);
  x = scaled(builder, "x_0", spec.embedding_scale, x);
  for (size_t index = 0; index < spec.layers.size(); ++index) x = say_layer(builder, spec, index, x);
  builder.enter_layer(-1);
  say_logits(builder, spec, apply(builder, "n", spec.final_norm, builder.last("x_end", x)));
  builder.each("next", OpKind::Greatest, {"logits"});
  builder.show("logits");
  builder.show("next");
  ModelProgram program{.text = {}, .spec = spec, .statements = builder.take()};
  program.text = program_text(spec, program.statements);
  return program;
}

}  // namespace lane
