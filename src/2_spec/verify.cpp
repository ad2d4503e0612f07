#include <fmt/format.h>

#include "lane/error.h"
#include "lane/spec.h"

namespace lane {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw InternalError(fmt::format("spec: {}: {}", where, what));
}

void expect(bool holds, const std::string& where, const char* what) {
  if (!holds) fail(where, what);
}

/// `linear` maps `columns` values to `rows`.
void expect_shape(const Linear& linear, int64_t rows, int64_t columns, const std::string& where) {
  const Weight& m = linear.matrix;
  if (m.rows != rows || m.columns != columns)
    fail(where, fmt::format("'{}' is {} x {}, not {} x {}", m.tensor, m.rows, m.columns, rows, columns));
  expect(!linear.bias || linear.bias.columns == rows, where, "a bias unlike its matrix");
}

void check(const Rotary& rotary, int64_t width, const std::string& where) {
  expect(rotary.width == width, where, "a rotation of another width than its head");
  expect(rotary.turned > 0 && rotary.turned % 2 == 0 && rotary.turned <= width, where, "a rotation past its head");
  expect(!rotary.factors || rotary.factors.columns == rotary.turned / 2, where, "not a factor a pair");
}

void check(const Attention& of, int64_t width, const std::string& where) {
  expect(of.groups > 0 && of.heads % of.groups == 0, where, "heads that do not share groups evenly");
  const int64_t q = of.heads * of.width * (of.gated ? 2 : 1), k = of.groups * of.width, v = of.groups * of.value_width;
  expect(bool(of.fused) != bool(of.q), where, "projections both fused and apart, or neither");
  if (of.fused) {
    expect_shape(of.fused, q + k + v, width, where);
  } else {
    expect_shape(of.q, q, width, where);
    expect_shape(of.k, k, width, where);
    expect_shape(of.v, v, width, where);
  }
  expect_shape(of.output, width, of.heads * of.value_width, where);
  if (of.rotary) check(*of.rotary, of.width, where);
}

void check(const LatentAttention& of, int64_t width, const std::string& where) {
  expect_shape(of.query, of.heads * (of.plain + of.turned), of.query_down ? of.query_down.matrix.rows : width, where);
  expect_shape(of.latent, of.rank + of.turned, width, where);
  expect_shape(of.output, width, of.heads * of.value_width, where);
  expect(bool(of.key_up) == bool(of.value_up) && bool(of.key_up) != bool(of.key_value_up), where,
         "latent keys and values both absorbed and not, or neither");
  check(of.rotary, of.turned, where);
}

void check(const ShortConvolution& of, int64_t width, const std::string& where) {
  expect(of.taps > 1, where, "a convolution over one position");
  expect_shape(of.in, 3 * of.channels, width, where);
  expect_shape(of.out, width, of.channels, where);
}

void check(const DeltaRule& of, int64_t width, const std::string& where) {
  expect(of.groups > 0 && of.heads % of.groups == 0, where, "heads that do not share groups evenly");
  expect(of.taps > 1, where, "a convolution over one position");
  const int64_t inner = of.heads * of.width, channels = 2 * of.groups * of.width + inner;
  expect(bool(of.interleaved) != (of.qkv && of.gate), where, "projections both interleaved and apart, or neither");
  if (of.interleaved) {
    expect_shape(of.interleaved, channels + inner, width, where);
  } else {
    expect_shape(of.qkv, channels, width, where);
    expect_shape(of.gate, inner, width, where);
  }
  expect_shape(of.out, width, inner, where);
  expect(bool(of.beta_alpha) != (of.beta && of.alpha), where, "beta and alpha both in one and apart, or neither");
}

void check(const Dense& of, int64_t width, const std::string& where) {
  expect(of.gated ? bool(of.gate) != of.fused : !of.gate && !of.fused, where,
         "a gate where there is none, or none where there is");
  if (of.gate) expect_shape(of.gate, of.width, width, where);
  expect_shape(of.up, of.fused ? 2 * of.width : of.width, width, where);
  expect_shape(of.down, width, of.width, where);
}

void check(const Experts& of, int64_t width, const std::string& where) {
  expect(of.used > 0 && of.used <= of.count, where, "more experts used than there are");
  expect(of.groups > 0 && of.count % of.groups == 0 && of.kept <= of.groups, where,
         "experts that do not form their groups");
  expect_shape(of.router, of.count, width, where);
  expect_shape(of.up, of.fused ? 2 * of.width : of.width, width, where);
  expect_shape(of.down, width, of.width, where);
  if (of.shared) check(*of.shared, width, where);
}

void check(const Layer& layer, int64_t width, const std::string& where) {
  std::visit([&](const auto& mixer) { check(mixer, width, where); }, layer.mixer);
  std::visit([&](const auto& feed_forward) { check(feed_forward, width, where); }, layer.feed_forward);
  expect(!layer.parallel || !layer.ffn_norm, where, "a parallel feed-forward with a norm of its own");
}

}  // namespace

void verify(const ModelSpec& spec) {
  expect(spec.architecture != nullptr, "model", "no architecture");
  expect(!spec.layers.empty(), "model", "no layers");
  expect(spec.ctx > 0 && spec.ctx <= spec.model_ctx, "model", "a context past the model's");
  expect(spec.tokens > 0 && spec.tokens <= spec.rows, "model", "more tokens than rows");
  expect(spec.embedding.rows == spec.rows && spec.embedding.columns == spec.width, "embedding",
         "another shape than the model");
  expect_shape(spec.head, spec.rows, spec.width, "head");
  for (size_t index = 0; index < spec.layers.size(); ++index)
    check(spec.layers[index], spec.width, fmt::format("layer {}", index));
}

}  // namespace lane
