// Latent attention. Files hold it absorbed (attn_k_b and attn_v_b, a matrix a head) or as it was trained (attn_kv_b).
#include <fmt/format.h>

#include <cmath>

#include "describe.h"

namespace lane {
namespace {

// Widths of a head as it was trained: absorbed files say them under other keys than those of the cache.
LatentAttention latent_sizes(const Source& source, const Block& block) {
  Keys& keys = source.keys;
  LatentAttention result;
  result.heads = keys.required_by_layer("attention.head_count", source.blocks)[size_t(block.index)];
  result.rank = keys.required_integer("attention.kv_lora_rank");
  result.turned = keys.required_integer("rope.dimension_count", {.low = 2});
  const int64_t share = source.width / result.heads;
  const int64_t cached = keys.integer("attention.key_length").value_or(share);
  const int64_t width = keys.integer("attention.key_length_mla").value_or(cached);
  const int64_t cached_value = keys.integer("attention.value_length").value_or(share);
  result.value_width = keys.integer("attention.value_length_mla").value_or(cached_value);
  if (width <= result.turned)
    keys.refuse_size("rope.dimension_count", fmt::format("{}", result.turned),
                     fmt::format("less than the {} of a key", width));
  if (keys.has("attention.key_length_mla") && (cached != result.rank + result.turned || cached_value != result.rank))
    keys.refuse_size("attention.key_length", fmt::format("{} and values of {}", cached, cached_value),
                     fmt::format("{} and values of {}", result.rank + result.turned, result.rank));
  result.plain = width - result.turned;
  return result;
}

// Where scores take the rotary magnitude, they take it twice, for queries and for keys. Without yarn, or without a
// multiplier of its own, the general 1 + ln(factor) / 10 is in it.
double score_scale(const Source& source, const LatentAttention& of) {
  const double scale = 1 / std::sqrt(double(of.plain + of.turned));
  if (source.row.yarn_log != YarnLog::Scores) return scale;
  const auto& yarn = of.rotary.yarn;
  const double log_factor = std::log(yarn ? yarn->factor : of.rotary.linear);
  const double multiplier = yarn_log_multiplier(source);
  const double general = yarn && multiplier != 0 ? 1 : 1 + 0.1 * log_factor;
  const double magnitude = attention_factor(source) * general * (1 + multiplier * log_factor);
  return magnitude * magnitude * scale;
}

Norm latent_norm(const Source& source, const std::string& base, int64_t columns) {
  Norm result{.kind = NormKind::Rms, .epsilon = source.epsilon};
  result.gain = source.tensors.vector(base + ".weight", {.columns = columns});
  return result;
}

void take_queries(const Source& source, const Block& block, LatentAttention& result) {
  const int64_t rows = source.product({result.heads, result.plain + result.turned});
  const int64_t said = source.keys.integer("attention.q_lora_rank", {.low = 0}).value_or(0);
  const int64_t rank = source.refusals.doubted() ? source.tensors.rows_of(block.tensor("attn_q_a.weight")) : said;
  if (rank == 0) {
    result.query = source.tensors.linear(block.tensor("attn_q"), {.rows = rows, .columns = source.width});
    return;
  }
  result.query_down = source.tensors.linear(block.tensor("attn_q_a"), {.rows = rank, .columns = source.width});
  result.query_norm = latent_norm(source, block.tensor("attn_q_a_norm"), rank);
  result.query = source.tensors.linear(block.tensor("attn_q_b"), {.rows = rows, .columns = rank});
}

void take_latent(const Source& source, const Block& block, LatentAttention& result) {
  Tensors& tensors = source.tensors;
  const int64_t heads = result.heads;
  result.latent =
      tensors.linear(block.tensor("attn_kv_a_mqa"), {.rows = result.rank + result.turned, .columns = source.width});
  result.latent_norm = latent_norm(source, block.tensor("attn_kv_a_norm"), result.rank);
  if (tensors.has(block.tensor("attn_kv_b.weight"))) {
    result.key_value_up =
        tensors.linear(block.tensor("attn_kv_b"),
                       {.rows = source.product({heads, result.plain + result.value_width}), .columns = result.rank});
  } else {
    result.key_up =
        tensors.linear(block.tensor("attn_k_b"), {.experts = heads, .rows = result.rank, .columns = result.plain});
    result.value_up = tensors.linear(block.tensor("attn_v_b"),
                                     {.experts = heads, .rows = result.value_width, .columns = result.rank});
  }
  result.output = tensors.linear(block.tensor("attn_output"),
                                 {.rows = source.width, .columns = source.product({heads, result.value_width})});
}

}  // namespace

LatentAttention latent_attention(const Source& source, const Block& block) {
  // One latent for all heads: whatever the cache's head count is called, it is not the model's.
  source.keys.ignore("attention.head_count_kv");
  LatentAttention result = latent_sizes(source, block);
  take_queries(source, block, result);
  take_latent(source, block, result);
  result.rotary = *rotary(source, block, result.turned, false);
  result.scale = score_scale(source, result);
  return result;
}

}  // namespace lane
