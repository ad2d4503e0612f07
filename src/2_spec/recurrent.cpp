// Mixers whose state does not grow with the position.
#include <fmt/format.h>

#include "describe.h"

namespace lane {

ShortConvolution short_convolution(const Source& source, const Block& block) {
  const Size taps = source.keys.required_integer("shortconv.l_cache", {.low = 2, .high = 64});
  const Size n = source.width;
  ShortConvolution result{.taps = taps.value(), .channels = n.value()};
  Tensors& tensors = source.tensors;
  result.in = tensors.linear(block.tensor("shortconv.in_proj"), {.rows = source.product({3, n}), .columns = n});
  result.kernel = tensors.vector(block.tensor("shortconv.conv.weight"), {.rows = n, .columns = taps});
  result.out = tensors.linear(block.tensor("shortconv.out_proj"), {.rows = n, .columns = n});
  return result;
}

namespace {

struct DeltaSizes {
  Size heads, groups, width, taps;
  Size inner = 0;     // values of all heads
  Size channels = 0;  // queries, keys and values: what the convolution runs over
};

DeltaSizes delta_sizes(const Source& source) {
  Keys& keys = source.keys;
  DeltaSizes of{.heads = keys.required_integer("ssm.time_step_rank"),
                .groups = keys.required_integer("ssm.group_count"),
                .width = keys.required_integer("ssm.state_size"),
                .taps = keys.required_integer("ssm.conv_kernel", {.low = 2, .high = 64})};
  if (known(of.heads, of.groups) && of.heads.value() % of.groups.value() != 0)
    of.groups = keys.refuse_size("ssm.group_count", fmt::format("{}", of.groups.value()),
                                 fmt::format("a divisor of the {} heads", of.heads.value()));
  of.inner = source.product({of.heads, of.width});
  of.channels = source.product({2, of.groups, of.width}) + of.inner;
  const Size said = keys.integer("ssm.inner_size").value_or(of.inner);
  if (known(said, of.inner) && !said.is(of.inner.value()))
    keys.refuse("ssm.inner_size", fmt::format("{}", said.value()),
                fmt::format("{}: {} heads of {}", of.inner.value(), of.heads.value(), of.width.value()));
  return of;
}

// One matrix that lays them out by key head, or two.
void take_projections(const Source& source, const Block& block, const DeltaSizes& of, DeltaRule& result) {
  Tensors& tensors = source.tensors;
  if (!result.tiled && tensors.has(block.tensor("ssm_in.weight"))) {
    result.interleaved =
        tensors.linear(block.tensor("ssm_in"), {.rows = of.channels + of.inner, .columns = source.width});
  } else {
    result.qkv = tensors.linear(block.tensor("attn_qkv"), {.rows = of.channels, .columns = source.width});
    result.gate = tensors.linear(block.tensor("attn_gate"), {.rows = of.inner, .columns = source.width});
  }
}

// Betas and alphas in one matrix, or apart.
void take_rates(const Source& source, const Block& block, Size heads, DeltaRule& result) {
  Tensors& tensors = source.tensors;
  if (tensors.has(block.tensor("ssm_ba.weight"))) {
    result.beta_alpha =
        tensors.linear(block.tensor("ssm_ba"), {.rows = source.product({2, heads}), .columns = source.width});
  } else {
    result.beta = tensors.linear(block.tensor("ssm_beta"), {.rows = heads, .columns = source.width});
    result.alpha = tensors.linear(block.tensor("ssm_alpha"), {.rows = heads, .columns = source.width});
  }
  result.time_bias = tensors.vector(block.tensor("ssm_dt.bias"), {.columns = heads});
  result.rate = tensors.vector(block.tensor("ssm_a"), {.columns = heads});
}

}  // namespace

DeltaRule delta_rule(const Source& source, const Block& block) {
  const DeltaSizes of = delta_sizes(source);
  DeltaRule result{.heads = of.heads.value(),
                   .groups = of.groups.value(),
                   .width = of.width.value(),
                   .taps = of.taps.value(),
                   .epsilon = source.epsilon,
                   .tiled = source.row.delta_tiled};
  Tensors& tensors = source.tensors;
  take_projections(source, block, of, result);
  result.kernel = tensors.vector(block.tensor("ssm_conv1d.weight"), {.rows = of.channels, .columns = of.taps});
  take_rates(source, block, of.heads, result);
  result.norm = {.kind = NormKind::Rms, .epsilon = source.epsilon, .width = result.width};
  result.norm.gain = tensors.vector(block.tensor("ssm_norm.weight"), {.columns = of.width});
  result.out = tensors.linear(block.tensor("ssm_out"), {.rows = source.width, .columns = of.inner});
  return result;
}

}  // namespace lane
