#include <fmt/format.h>

#include "lane/spec.h"

namespace lane {
namespace {

std::string_view text(NormKind kind) { return kind == NormKind::Rms ? "rms norm" : "layer norm"; }

std::string_view text(Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return "silu";
    case Activation::Gelu:
      return "gelu";
    case Activation::SquareRelu:
      return "square relu";
    case Activation::Clamped:
      return "clamped";
  }
  return "";
}

std::string text(const Weight& weight) {
  std::string shape = weight.experts != 1 ? fmt::format("{} x ", weight.experts) : "";
  if (weight.matrix || weight.rows != 1) shape += fmt::format("{} x ", weight.rows);
  return fmt::format("{} [{}{}]", weight.tensor, shape, weight.columns);
}

/// Lines of `key value`, indented by where they belong.
class Lines {
 public:
  explicit Lines(std::string& out, std::string_view indent) : out_(out), indent_(indent) {}
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    out_ += indent_;
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void add(std::string_view name, const Weight& weight) {
    if (weight) say("{} {}", name, text(weight));
  }
  void add(std::string_view name, const Linear& linear) {
    if (!linear) return add(fmt::format("{} bias", name), linear.bias);
    if (linear.bias) return say("{} {} + {}", name, text(linear.matrix), text(linear.bias));
    add(name, linear.matrix);
  }
  void add(std::string_view name, const std::optional<Norm>& norm) {
    if (!norm) return;
    std::string line = fmt::format("{} {} epsilon {}", name, text(norm->kind), norm->epsilon);
    if (norm->width > 0) line += fmt::format(" width {}", norm->width);
    if (norm->own_gains) line += ", gains for each head";
    if (norm->gain) line += fmt::format(" {}", text(norm->gain));
    if (norm->bias) line += fmt::format(" + {}", text(norm->bias));
    say("{}", line);
  }
  void add(const Rotary& rotary) {
    std::string line = fmt::format("rotary {} of {} base {} {}", rotary.turned, rotary.width, rotary.base,
                                   rotary.pairing == Pairing::Halves ? "halves" : "neighbours");
    if (rotary.linear != 1) line += fmt::format(" linear {}", rotary.linear);
    if (rotary.yarn)
      line += fmt::format(" yarn {} original {} fast {} slow {}", rotary.yarn->factor, rotary.yarn->original,
                          rotary.yarn->fast, rotary.yarn->slow);
    if (rotary.magnitude != 1) line += fmt::format(" magnitude {}", rotary.magnitude);
    if (rotary.factors) line += fmt::format(" factors {}", text(rotary.factors));
    say("{}", line);
  }
  void add_unless(std::string_view name, double value, double usual) {
    if (value != usual) say("{} {}", name, value);
  }

 private:
  std::string& out_;
  std::string_view indent_;
};

void add_mixer(Lines& lines, const Attention& of) {
  lines.say("attention heads {} groups {} width {} value width {} scale {}{}", of.heads, of.groups, of.width,
            of.value_width, of.scale, of.gated ? ", gated" : "");
  if (of.window > 0) lines.say("window {}", of.window);
  lines.add_unless("score cap", of.score_cap, 0);
  lines.add_unless("value scale", of.value_scale, 1);
  lines.add_unless("clamp", of.clamp, 0);
  lines.add("q, k, v", of.fused);
  lines.add("q", of.q);
  lines.add("k", of.k);
  lines.add("v", of.v);
  lines.add("output", of.output);
  lines.add("q norm", of.q_norm);
  lines.add("k norm", of.k_norm);
  if (of.norm_after_rotation) lines.say("q and k are normed after the rotation");
  if (of.rotary) lines.add(*of.rotary);
  if (of.temperature) lines.say("temperature {} length {}", of.temperature->factor, of.temperature->length);
  lines.add("sinks", of.sinks);
}

void add_mixer(Lines& lines, const LatentAttention& of) {
  lines.say("latent attention heads {} rank {} plain {} turned {} value width {} scale {}", of.heads, of.rank, of.plain,
            of.turned, of.value_width, of.scale);
  lines.add("query down", of.query_down);
  lines.add("query norm", of.query_norm);
  lines.add("query", of.query);
  lines.add("latent", of.latent);
  lines.add("latent norm", std::optional<Norm>(of.latent_norm));
  lines.add("key up", of.key_up);
  lines.add("value up", of.value_up);
  lines.add("key and value up", of.key_value_up);
  lines.add("output", of.output);
  lines.add(of.rotary);
}

void add_mixer(Lines& lines, const ShortConvolution& of) {
  lines.say("short convolution taps {} channels {}", of.taps, of.channels);
  lines.add("in", of.in);
  lines.add("kernel", of.kernel);
  lines.add("out", of.out);
}

void add_mixer(Lines& lines, const DeltaRule& of) {
  lines.say("delta rule heads {} groups {} width {} taps {}{}", of.heads, of.groups, of.width, of.taps,
            of.tiled ? ", tiled" : "");
  lines.add("q, k, v", of.qkv);
  lines.add("gate", of.gate);
  lines.add("q, k, v and gate by head", of.interleaved);
  lines.add("beta", of.beta);
  lines.add("alpha", of.alpha);
  lines.add("beta and alpha", of.beta_alpha);
  lines.add("kernel", of.kernel);
  lines.add("time bias", of.time_bias);
  lines.add("rate", of.rate);
  lines.add("norm", std::optional<Norm>(of.norm));
  lines.add("out", of.out);
}

void add_feed_forward(Lines& lines, const Dense& of) {
  lines.say("{} {} width {}", of.gated ? "gated" : "plain", text(of.activation), of.width);
  lines.add("gate", of.gate);
  lines.add(of.fused ? "gate and up" : "up", of.up);
  lines.add("down", of.down);
}

std::string_view text(Gating gating) {
  switch (gating) {
    case Gating::Softmax:
      return "softmax";
    case Gating::Sigmoid:
      return "sigmoid";
    case Gating::SoftmaxOfChosen:
      return "softmax of the chosen";
  }
  return "";
}

void add_feed_forward(Lines& lines, const Experts& of) {
  lines.say("experts {} of {} width {} {} by {}{}", of.used, of.count, of.width, text(of.activation), text(of.gating),
            of.normalised ? ", normalised" : "");
  if (of.groups > 1) lines.say("groups {} kept {}", of.groups, of.kept);
  lines.add_unless("factor", of.factor, 1);
  if (of.activation == Activation::Clamped) lines.say("limit {} slope {}", of.limit, of.slope);
  lines.add("router", of.router);
  lines.add("selection bias", of.selection_bias);
  lines.add("gate", of.gate);
  lines.add(of.fused ? "gate and up" : "up", of.up);
  lines.add("down", of.down);
  if (!of.shared) return;
  lines.say("shared:");
  add_feed_forward(lines, *of.shared);
  lines.add("shared gate", of.shared_gate);
}

void add_layer(std::string& out, size_t index, const Layer& layer) {
  out += fmt::format("layer {}{}\n", index, layer.parallel ? ", parallel" : "");
  Lines lines(out, "  ");
  lines.add("mixer norm", layer.mixer_norm);
  std::visit([&](const auto& mixer) { add_mixer(lines, mixer); }, layer.mixer);
  lines.add("mixer post norm", layer.mixer_post_norm);
  lines.add("feed-forward norm", layer.ffn_norm);
  std::visit([&](const auto& feed_forward) { add_feed_forward(lines, feed_forward); }, layer.feed_forward);
  lines.add("feed-forward post norm", layer.ffn_post_norm);
}

}  // namespace

std::string to_text(const ModelSpec& spec) {
  std::string out;
  Lines lines(out, "");
  lines.say("architecture {}", spec.architecture->name);
  lines.say("context {} of {}", spec.ctx, spec.model_ctx);
  lines.say("tokens {}", spec.tokens);
  lines.say("embedding {}", text(spec.embedding));
  lines.add_unless("embedding scale", spec.embedding_scale, 1);
  lines.add_unless("residual scale", spec.residual_scale, 1);
  for (size_t index = 0; index < spec.layers.size(); ++index) add_layer(out, index, spec.layers[index]);
  lines.add("final norm", std::optional<Norm>(spec.final_norm));
  lines.add("head", spec.head);
  lines.add_unless("logit scale", spec.logit_scale, 1);
  lines.add_unless("logit cap", spec.logit_cap, 0);
  if (!spec.left_out.empty()) lines.say("left out {} tensors", spec.left_out.size());
  return out;
}

}  // namespace lane
