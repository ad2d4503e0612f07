#include <fmt/format.h>

#include "describe.h"
#include "lane/error.h"

namespace lane {
namespace {

// Tensors end in `suffix`: "_shexp" for the expert every token takes.
Dense dense(const Source& source, const Block& block, int64_t width, const std::string& suffix, Presence bias) {
  Dense result{.activation = source.row.activation, .gated = source.row.gated, .width = width};
  result.fused = source.row.gated && source.row.fused_gate_up && suffix.empty();
  const Tensors::Dims in{.rows = width, .columns = source.width};
  Tensors& tensors = source.tensors;
  if (result.gated && !result.fused) result.gate = tensors.linear(block.tensor("ffn_gate" + suffix), in, bias);
  result.up =
      tensors.linear(block.tensor("ffn_up" + suffix),
                     {.rows = result.fused ? source.product({2, width}) : width, .columns = source.width}, bias);
  result.down = tensors.linear(block.tensor("ffn_down" + suffix), {.rows = source.width, .columns = width}, bias);
  return result;
}

std::optional<int64_t> dense_width(const Source& source, const Block& block) {
  const auto widths = source.keys.by_layer("feed_forward_length", source.blocks, {.low = 0});
  return widths ? std::optional((*widths)[size_t(block.index)]) : std::nullopt;
}

int64_t required_dense_width(const Source& source, const Block& block) {
  const int64_t width = dense_width(source, block).value_or(0);
  return width != 0 ? width : source.keys.required_integer("feed_forward_length");
}

int64_t expert_count(const Source& source) {
  return source.keys.integer("expert_count", {.low = 0, .high = 1024}).value_or(0);
}

// What a key says where the row reads it; where it does not, `otherwise`, which is all that the key may say.
int64_t option(const Source& source, bool read, std::string_view key, Range range, int64_t otherwise) {
  const int64_t said = source.keys.integer(key, range).value_or(otherwise);
  if (read || said == otherwise) return said;
  source.keys.refuse_unread(key, fmt::format("{}", said));
  return otherwise;
}

bool is_counted(const Source& source, const Block& block) {
  const ExpertRow& row = source.row.experts;
  if (expert_count(source) == 0) return false;
  const int64_t dense_layers = option(source, row.leading_key, "leading_dense_block_count", {.low = 0}, 0);
  const int64_t step = option(source, row.interleave_key, "interleave_moe_layer_step", {}, 1);
  return block.index >= dense_layers && (block.index + 1) % step == 0;
}

bool has_experts(const Source& source, const Block& block) {
  const bool routed = source.tensors.has(block.tensor("ffn_gate_inp.weight"));
  switch (source.row.experts.layers) {
    case ExpertLayers::None:
      if (expert_count(source) > 0)
        source.refusals.add(NotYetError(fmt::format("routed experts in architecture '{}'", source.row.name)));
      return routed && expert_count(source) > 0;
    case ExpertLayers::ByRouter:
      return routed;
    case ExpertLayers::Counted: {
      const bool counted = is_counted(source, block);
      return source.refusals.doubted() ? routed : counted;
    }
  }
  return false;
}

Gating gating(const Source& source) {
  constexpr std::string_view kKey = "expert_gating_func";
  const ExpertRow& row = source.row.experts;
  const auto key = source.keys.integer(kKey, {.low = 0});
  if (!key && row.gating_key == Presence::Required) source.keys.required_integer(kKey);
  if (key.value_or(0) == 0) return row.gating;
  if (row.gating_key == Presence::Absent && Gating(*key - 1) != row.gating)
    source.keys.refuse_unread(kKey, fmt::format("{}", *key));
  if (*key <= 3) return Gating(*key - 1);
  source.refusals.add(NotYetError(fmt::format("'{}' = {}; accepted are 1 softmax, 2 sigmoid, 3 softmax of the chosen",
                                              source.keys.full(kKey), *key)));
  return row.gating;
}

bool is_normalised(const Source& source) {
  constexpr std::string_view kKey = "expert_weights_norm";
  const ExpertRow& row = source.row.experts;
  const bool said = source.keys.boolean(kKey).value_or(row.normalised);
  if (!row.normalised_key && said != row.normalised) source.keys.refuse_unread(kKey, said ? "true" : "false");
  return said;
}

// A file's 0 stands for 1.
double weights_factor(const Source& source) {
  constexpr std::string_view kKey = "expert_weights_scale";
  const double said = source.keys.real(kKey).value_or(1);
  if (said == 0 || said == 1) return 1;
  if (!source.row.experts.factor_key) source.keys.refuse_unread(kKey, fmt::format("{}", said));
  return said;
}

// Experts form groups, of which the best are kept before experts are chosen.
void read_groups(const Source& source, Experts& result) {
  const int64_t groups = source.keys.integer("expert_group_count", {.low = 0}).value_or(0);
  const int64_t kept = source.keys.integer("expert_group_used_count", {.low = 0}).value_or(0);
  if (groups <= 1) return;
  if (result.count % groups != 0 || groups >= result.count)
    source.keys.refuse_size("expert_group_count", fmt::format("{}", groups),
                            fmt::format("a divisor of the {} experts", result.count));
  if (kept < 1 || kept > groups || result.used > result.count / groups * kept)
    source.keys.refuse_size("expert_group_used_count", fmt::format("{}", kept),
                            fmt::format("1 to the {} groups, and enough for {} experts", groups, result.used));
  result.groups = groups;
  result.kept = kept;
}

void read_routing(const Source& source, const Block& block, Experts& result) {
  const ExpertRow& row = source.row.experts;
  result.count = expert_count(source);
  if (source.refusals.doubted()) result.count = source.tensors.rows_of(block.tensor("ffn_gate_inp.weight"));
  if (result.count == 0) source.keys.required_integer("expert_count");
  result.used = source.keys.required_integer("expert_used_count", {.high = result.count});
  read_groups(source, result);
  result.gating = gating(source);
  result.normalised = is_normalised(source);
  result.factor = weights_factor(source);
  result.router = source.tensors.linear(block.tensor("ffn_gate_inp"), {.rows = result.count, .columns = source.width},
                                        row.router_bias);
  result.selection_bias =
      source.tensors.vector(row.selection_bias, block.tensor("exp_probs_b.bias"), {.columns = result.count});
}

void take_experts(const Source& source, const Block& block, Experts& result) {
  const Presence bias = source.row.experts.bias;
  const Tensors::Dims in{.experts = result.count, .rows = result.width, .columns = source.width};
  Tensors& tensors = source.tensors;
  if (tensors.has(block.tensor("ffn_gate_up_exps.weight"))) {
    result.fused = true;
    result.up =
        tensors.linear(block.tensor("ffn_gate_up_exps"),
                       {.experts = in.experts, .rows = source.product({2, in.rows}), .columns = in.columns}, bias);
  } else {
    result.gate = tensors.linear(block.tensor("ffn_gate_exps"), in, bias);
    result.up = tensors.linear(block.tensor("ffn_up_exps"), in, bias);
  }
  result.down = tensors.linear(block.tensor("ffn_down_exps"),
                               {.experts = in.experts, .rows = source.width, .columns = result.width}, bias);
}

void take_shared(const Source& source, const Block& block, Experts& result) {
  const ExpertRow& row = source.row.experts;
  const auto count = source.keys.integer("expert_shared_count", {.low = 0, .high = 1024});
  const auto width = source.keys.integer("expert_shared_feed_forward_length", {.low = 0});
  const bool there = source.tensors.has(block.tensor("ffn_up_shexp.weight"));
  if (row.shared == Presence::Absent || (row.shared == Presence::Optional && !there)) return;
  const int64_t shared = width.value_or(0) != 0 ? *width : source.product({result.width, count.value_or(1)});
  result.shared = dense(source, block, shared, "_shexp", Presence::Absent);
  result.shared_gate.matrix =
      source.tensors.matrix(row.shared_gate, block.tensor("ffn_gate_inp_shexp.weight"), {.columns = source.width});
}

Experts experts(const Source& source, const Block& block) {
  Experts result{.activation = source.row.activation, .limit = source.row.clamp_limit, .slope = source.row.clamp_slope};
  read_routing(source, block, result);
  result.width = source.keys.integer("expert_feed_forward_length", {.low = 0}).value_or(0);
  if (result.width == 0 && !source.refusals.doubted()) result.width = required_dense_width(source, block);
  take_experts(source, block, result);
  take_shared(source, block, result);
  return result;
}

// A model may have none of the layers that a key is for.
void know_keys(const Source& source) {
  if (source.row.experts.layers == ExpertLayers::None) return;
  for (std::string_view key : {"expert_count", "expert_feed_forward_length", "expert_gating_func", "expert_group_count",
                               "expert_group_used_count", "expert_shared_count", "expert_shared_feed_forward_length",
                               "expert_used_count", "expert_weights_norm", "expert_weights_scale",
                               "feed_forward_length", "interleave_moe_layer_step", "leading_dense_block_count"})
    source.keys.ignore(key);
}

}  // namespace

FeedForward feed_forward(const Source& source, const Block& block) {
  know_keys(source);
  if (has_experts(source, block)) return experts(source, block);
  if (source.row.activation == Activation::Clamped)
    source.refusals.add(NotYetError(fmt::format("block {}: the clamped gate without routed experts", block.index)));
  return dense(source, block, required_dense_width(source, block), "", source.row.ffn_bias);
}

}  // namespace lane
