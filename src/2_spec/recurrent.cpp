// Mixers whose state does not grow with the position.
#include <fmt/format.h>

#include "describe.h"

namespace lane {

ShortConvolution short_convolution(const Source& source, const Block& block) {
  ShortConvolution result{.taps = source.keys.required_integer("shortconv.l_cache", {.low = 2, .high = 64}),
                          .channels = source.width};
  Tensors& tensors = source.tensors;
  const int64_t n = source.width;
  result.in = tensors.linear(block.tensor("shortconv.in_proj"), {.rows = source.product({3, n}), .columns = n});
  result.kernel = tensors.vector(block.tensor("shortconv.conv.weight"), {.rows = n, .columns = result.taps});
  result.out = tensors.linear(block.tensor("shortconv.out_proj"), {.rows = n, .columns = n});
  return result;
}

namespace {

// Heads and widths of a delta rule layer.
DeltaRule delta_sizes(const Source& source) {
  Keys& keys = source.keys;
  DeltaRule result{.heads = keys.required_integer("ssm.time_step_rank"),
                   .groups = keys.required_integer("ssm.group_count"),
                   .width = keys.required_integer("ssm.state_size"),
                   .taps = keys.required_integer("ssm.conv_kernel", {.low = 2, .high = 64}),
                   .epsilon = source.epsilon,
                   .tiled = source.row.delta_tiled};
  if (result.heads % result.groups != 0)
    keys.refuse_size("ssm.group_count", fmt::format("{}", result.groups),
                     fmt::format("a divisor of the {} heads", result.heads));
  const int64_t inner = source.product({result.heads, result.width});
  if (keys.integer("ssm.inner_size").value_or(inner) != inner)
    keys.refuse_size("ssm.inner_size", "another number",
                     fmt::format("{}: {} heads of {}", inner, result.heads, result.width));
  return result;
}

// One matrix that lays them out by key head, or two.
void take_projections(const Source& source, const Block& block, int64_t channels, int64_t inner, DeltaRule& result) {
  Tensors& tensors = source.tensors;
  if (!result.tiled && tensors.has(block.tensor("ssm_in.weight"))) {
    result.interleaved = tensors.linear(block.tensor("ssm_in"), {.rows = channels + inner, .columns = source.width});
  } else {
    result.qkv = tensors.linear(block.tensor("attn_qkv"), {.rows = channels, .columns = source.width});
    result.gate = tensors.linear(block.tensor("attn_gate"), {.rows = inner, .columns = source.width});
  }
}

// Betas and alphas in one matrix, or apart.
void take_rates(const Source& source, const Block& block, DeltaRule& result) {
  Tensors& tensors = source.tensors;
  if (tensors.has(block.tensor("ssm_ba.weight"))) {
    result.beta_alpha =
        tensors.linear(block.tensor("ssm_ba"), {.rows = source.product({2, result.heads}), .columns = source.width});
  } else {
    result.beta = tensors.linear(block.tensor("ssm_beta"), {.rows = result.heads, .columns = source.width});
    result.alpha = tensors.linear(block.tensor("ssm_alpha"), {.rows = result.heads, .columns = source.width});
  }
  result.time_bias = tensors.vector(block.tensor("ssm_dt.bias"), {.columns = result.heads});
  result.rate = tensors.vector(block.tensor("ssm_a"), {.columns = result.heads});
}

}  // namespace

DeltaRule delta_rule(const Source& source, const Block& block) {
  DeltaRule result = delta_sizes(source);
  Tensors& tensors = source.tensors;
  const int64_t inner = source.product({result.heads, result.width});
  const int64_t channels = source.product({2, result.groups, result.width}) + inner;
  take_projections(source, block, channels, inner, result);
  result.kernel = tensors.vector(block.tensor("ssm_conv1d.weight"), {.rows = channels, .columns = result.taps});
  take_rates(source, block, result);
  result.norm = {.kind = NormKind::Rms, .epsilon = source.epsilon, .width = result.width};
  result.norm.gain = tensors.vector(block.tensor("ssm_norm.weight"), {.columns = result.width});
  result.out = tensors.linear(block.tensor("ssm_out"), {.rows = source.width, .columns = inner});
  return result;
}

}  // namespace lane
