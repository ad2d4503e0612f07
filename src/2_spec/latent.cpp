// Latent attention. Files hold it absorbed (attn_k_b and attn_v_b, a matrix a head) or as it was trained (attn_kv_b).
#include <fmt/format.h>

#include <cmath>

#include "describe.h"

namespace lane {
namespace {

// Of a head as it was trained.
struct Widths {
  Size heads, rank, turned;
  Size key = 0, value = 0;  // plain and turned together; a value

  Size plain() const { return key - turned; }
};

// Of the cache, under the keys that other models' widths have: `wanted`, where they are known.
void check_cached(const Source& source, std::string_view key, Size wanted) {
  const Size said = source.keys.required_integer(key);
  if (known(said, wanted) && !said.is(wanted.value()))
    source.keys.refuse(key, fmt::format("{}", said.value()),
                       fmt::format("{}, the cache's, beside '{}_mla'", wanted.value(), source.keys.full(key)));
}

// Absorbed files say the trained widths under keys of their own.
void read_widths(const Source& source, Widths& of) {
  Keys& keys = source.keys;
  constexpr std::string_view kKey = "attention.key_length", kValue = "attention.value_length";
  const Size share = source.width / of.heads;
  of.key = keys.integer("attention.key_length_mla").value_or(keys.integer(kKey).value_or(share));
  of.value = keys.integer("attention.value_length_mla").value_or(keys.integer(kValue).value_or(share));
  if (!keys.has("attention.key_length_mla")) return;
  check_cached(source, kKey, of.rank + of.turned);
  check_cached(source, kValue, of.rank);
}

Widths latent_widths(const Source& source, const Block& block) {
  Keys& keys = source.keys;
  Widths of{.heads = keys.required_by_layer("attention.head_count", source.blocks)[size_t(block.index)],
            .rank = keys.required_integer("attention.kv_lora_rank"),
            .turned = keys.required_integer("rope.dimension_count", {.low = 2})};
  read_widths(source, of);
  if (known(of.key, of.turned) && of.key.value() <= of.turned.value())
    of.turned = keys.refuse_size("rope.dimension_count", fmt::format("{}", of.turned.value()),
                                 fmt::format("less than the {} of a key", of.key.value()));
  return of;
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

Norm latent_norm(const Source& source, const std::string& base, Size columns) {
  Norm result{.kind = NormKind::Rms, .epsilon = source.epsilon};
  result.gain = source.tensors.vector(base + ".weight", {.columns = columns});
  return result;
}

// Of queries: 0 where one matrix makes them.
Size query_rank(const Source& source, const Block& block) {
  constexpr std::string_view kKey = "attention.q_lora_rank";
  const Size shown = source.tensors.rows_of(block.tensor("attn_q_a.weight"));
  const auto said = source.keys.integer(kKey, {.low = 0});
  if (!said && shown.known())
    return source.keys.refuse_missing(kKey, fmt::format("{}, the rows of 'attn_q_a'", shown.value()));
  if (!said || (!said->known() && !shown.known())) return 0;
  return *said;
}

void take_queries(const Source& source, const Block& block, const Widths& of, LatentAttention& result) {
  const Size rows = source.product({of.heads, of.key});
  const Size rank = query_rank(source, block);
  if (rank.is(0)) {
    result.query = source.tensors.linear(block.tensor("attn_q"), {.rows = rows, .columns = source.width});
    return;
  }
  result.query_down = source.tensors.linear(block.tensor("attn_q_a"), {.rows = rank, .columns = source.width});
  result.query_norm = latent_norm(source, block.tensor("attn_q_a_norm"), rank);
  result.query = source.tensors.linear(block.tensor("attn_q_b"), {.rows = rows, .columns = rank});
}

void take_latent(const Source& source, const Block& block, const Widths& of, LatentAttention& result) {
  Tensors& tensors = source.tensors;
  result.latent = tensors.linear(block.tensor("attn_kv_a_mqa"), {.rows = of.rank + of.turned, .columns = source.width});
  result.latent_norm = latent_norm(source, block.tensor("attn_kv_a_norm"), of.rank);
  if (tensors.has(block.tensor("attn_kv_b.weight"))) {
    result.key_value_up = tensors.linear(
        block.tensor("attn_kv_b"), {.rows = source.product({of.heads, of.plain() + of.value}), .columns = of.rank});
  } else {
    result.key_up =
        tensors.linear(block.tensor("attn_k_b"), {.experts = of.heads, .rows = of.rank, .columns = of.plain()});
    result.value_up =
        tensors.linear(block.tensor("attn_v_b"), {.experts = of.heads, .rows = of.value, .columns = of.rank});
  }
  result.output = tensors.linear(block.tensor("attn_output"),
                                 {.rows = source.width, .columns = source.product({of.heads, of.value})});
}

}  // namespace

LatentAttention latent_attention(const Source& source, const Block& block) {
  // One latent for all heads: whatever the cache's head count is called, it is not the model's.
  source.keys.ignore("attention.head_count_kv");
  const Widths of = latent_widths(source, block);
  LatentAttention result{.heads = of.heads.value(),
                         .rank = of.rank.value(),
                         .plain = of.plain().value(),
                         .turned = of.turned.value(),
                         .value_width = of.value.value()};
  take_queries(source, block, of, result);
  take_latent(source, block, of, result);
  result.rotary = rotary(source, block, of.turned, false).value_or(Rotary{});
  result.scale = score_scale(source, result);
  return result;
}

}  // namespace lane
