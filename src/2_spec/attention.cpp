#include <fmt/format.h>

#include <cmath>

#include "describe.h"

namespace lane {
namespace {

struct Heads {
  Size heads, groups, width, value_width;
};

Heads heads(const Source& source, const Block& block) {
  const auto index = size_t(block.index);
  const Size count = source.keys.required_by_layer("attention.head_count", source.blocks)[index];
  Heads of{.heads = count, .groups = count, .width = 0, .value_width = 0};
  if (const auto groups = source.keys.by_layer("attention.head_count_kv", source.blocks, {.low = 0}))
    of.groups = (*groups)[index];
  if (of.groups.is(0) || (known(count, of.groups) && count.value() % of.groups.value() != 0))
    of.groups =
        source.keys.refuse_size("attention.head_count_kv", fmt::format("{}", of.groups.value()),
                                count.known() ? fmt::format("a divisor of the {} heads", count.value()) : "1 or more");
  const Size share = source.width / count;
  of.width = source.keys.integer("attention.key_length").value_or(share);
  of.value_width = source.keys.integer("attention.value_length").value_or(share);
  return of;
}

// A layer of which it is not known has one: what windows ask for is read then.
bool is_windowed(const Source& source, const Block& block) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  if (source.keys.is_array(kPattern) || source.row.window_period == 0) {
    const auto layers = source.keys.array(kPattern, source.blocks, {.low = 0});
    if (layers) return !(*layers)[size_t(block.index)].is(0);
    source.keys.refuse_missing(kPattern, "a value for each block: 1 where attention has a window");
    return true;
  }
  const Size period = source.keys.integer(kPattern, {.low = 0}).value_or(source.row.window_period);
  return !period.known() || period.is(0) || block.index % period.value() < period.value() - 1;
}

// Positions that a layer sees; 0: all.
int64_t window(const Source& source, const Block& block) {
  const Size size = window_size(source);
  if (size.is(0)) source.keys.ignore("attention.sliding_window_pattern");
  return !size.is(0) && is_windowed(source, block) ? size.value() : 0;
}

double score_scale(const Source& source, const Heads& of) {
  const double scale = source.row.score_scale_key ? source.keys.real("attention.scale").value_or(0) : 0;
  if (scale != 0) return scale;
  const bool wide = source.row.wide_scale_blocks != 0 && source.row.wide_scale_blocks == source.layers;
  return 1 / std::sqrt(double((wide ? source.width / of.heads : of.width).value()));
}

// A file's 0 stands for 1.
double value_scale(const Source& source) {
  const double said = source.keys.real("attention.value_scale").value_or(1);
  return said == 0 ? 1 : said;
}

// One fused tensor, with one bias or three, or three of both.
void take_projections(const Source& source, const Block& block, const Heads& of, Attention& result) {
  const Size q = source.product({of.heads, of.width, result.gated ? 2 : 1});
  const Size k = source.product({of.groups, of.width}), v = source.product({of.groups, of.value_width});
  Tensors& tensors = source.tensors;
  const bool fused = tensors.has(block.tensor("attn_qkv.weight"));
  const bool fused_bias = fused && !tensors.has(block.tensor("attn_q.bias"));
  if (fused)
    result.fused = tensors.linear(block.tensor("attn_qkv"), {.rows = q + k + v, .columns = source.width},
                                  fused_bias ? source.row.qkv_bias : Presence::Absent);
  const auto take = [&](const std::string& base, Size rows) {
    Linear one;
    if (!fused) one.matrix = tensors.matrix(base + ".weight", {.rows = rows, .columns = source.width});
    if (!fused_bias) one.bias = tensors.vector(source.row.qkv_bias, base + ".bias", {.columns = rows});
    return one;
  };
  result.q = take(block.tensor("attn_q"), q);
  result.k = take(block.tensor("attn_k"), k);
  result.v = take(block.tensor("attn_v"), v);
  result.output = tensors.linear(block.tensor("attn_output"),
                                 {.rows = source.width, .columns = source.product({of.heads, of.value_width})},
                                 source.row.output_bias);
}

// Queries are scaled by their position, from the original context on.
std::optional<Temperature> temperature(const Source& source) {
  constexpr std::string_view kKey = "attention.temperature_scale";
  const auto factor = source.row.temperature_key ? source.keys.real(kKey) : 0;
  if (factor.value_or(0) == 0 && !source.keys.refused(kKey, factor)) return std::nullopt;
  return Temperature{factor.value_or(0), original_context(source)};
}

std::optional<Norm> head_norm(const Source& source, const std::string& base, Size count, Size width) {
  const bool absent = source.row.head_norm_presence == Presence::Optional && !source.tensors.has(base + ".weight");
  if (source.row.head_norm == HeadNorm::None || absent) return std::nullopt;
  Norm result{.kind = source.row.norm, .epsilon = source.epsilon};
  result.width = source.row.head_norm == HeadNorm::Whole ? 0 : width.value();
  result.own_gains = source.row.head_norm == HeadNorm::OwnGains;
  Tensors::Dims dims{.columns = source.row.head_norm == HeadNorm::Whole ? source.product({count, width}) : width};
  if (result.own_gains) dims.rows = count;
  result.gain = source.tensors.vector(base + ".weight", dims);
  return result;
}

}  // namespace

Attention attention(const Source& source, const Block& block) {
  const Heads of = heads(source, block);
  const Architecture& row = source.row;
  Attention result{.heads = of.heads.value(),
                   .groups = of.groups.value(),
                   .width = of.width.value(),
                   .value_width = of.value_width.value(),
                   .gated = row.gated_attention};
  result.scale = score_scale(source, of);
  result.window = window(source, block);
  if (row.score_cap > 0) result.score_cap = source.keys.not_negative("attn_logit_softcapping").value_or(row.score_cap);
  if (row.value_scale_key) result.value_scale = value_scale(source);
  if (row.clamp_key) result.clamp = source.keys.real("attention.clamp_kqv").value_or(0);
  take_projections(source, block, of, result);
  result.q_norm = head_norm(source, block.tensor("attn_q_norm"), of.heads, of.width);
  result.k_norm = head_norm(source, block.tensor("attn_k_norm"), of.groups, of.width);
  result.norm_after_rotation = row.norm_after_rotation;
  result.rotary = rotary(source, block, of.width, result.window > 0);
  result.temperature = temperature(source);
  result.sinks = source.tensors.vector(row.sinks, block.tensor("attn_sinks.weight"), {.columns = of.heads});
  return result;
}

}  // namespace lane
