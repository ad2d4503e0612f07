#include <fmt/format.h>

#include "describe.h"
#include "lane/error.h"

namespace lane {
namespace {

// Tensors end in `suffix`: "_shexp" for the expert every token takes.
Dense dense(const Source& source, const Block& block, Size width, const std::string& suffix, Presence bias) {
  Dense result{.activation = source.row.activation, .gated = source.row.gated, .width = width.value()};
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

Size required_dense_width(const Source& source, const Block& block) {
  constexpr std::string_view kKey = "feed_forward_length";
  const auto widths = source.keys.by_layer(kKey, source.blocks, {.low = 0});
  if (!widths) return source.keys.refuse_missing(kKey, "an integer, or one for each block");
  const Size width = (*widths)[size_t(block.index)];
  return width.is(0) ? source.keys.refuse_size(kKey, "0", "1 or more") : width;
}

// 0 says as much as no key.
Size missing_width(const Source& source, std::string_view key) {
  return source.keys.has(key) ? source.keys.refuse_size(key, "0", "1 or more")
                              : source.keys.refuse_missing(key, "an integer");
}

bool has_expert_tensors(const Source& source, const Block& block) {
  return source.tensors.has(block.tensor("ffn_gate_inp.weight")) ||
         source.tensors.has(block.tensor("ffn_down_exps.weight"));
}

// The first layer whose tensors are experts'.
std::optional<Block> shown_experts(const Source& source) {
  for (Block block; block.index < source.layers; ++block.index)
    if (has_expert_tensors(source, block)) return block;
  return std::nullopt;
}

// 0: the model has none, and no tensors of any.
Size expert_count(const Source& source) {
  constexpr std::string_view kKey = "expert_count";
  const auto said = source.keys.integer(kKey, {.low = 0, .high = 1024});
  if (source.row.experts.layers == ExpertLayers::None || (said && !said->is(0))) return said.value_or(0);
  const auto block = shown_experts(source);
  if (!block) return 0;
  const Size shown = source.tensors.rows_of(block->tensor("ffn_gate_inp.weight"));
  const std::string number = shown.known() ? fmt::format("{}, ", shown.value()) : "";
  source.keys.refuse(kKey, "0", fmt::format("{}the number of experts that tensors have", number));
  return Size::unknown();
}

// What a key says where the row reads it; where it does not, `otherwise`, which is all that the key may say.
Size option(const Source& source, bool read, std::string_view key, Range range, int64_t otherwise) {
  const Size said = source.keys.integer(key, range).value_or(otherwise);
  if (read || !said.known() || said.is(otherwise)) return said;
  source.keys.refuse_unread(key, fmt::format("{}", said.value()));
  return otherwise;
}

Size missing_dense_layers(const Source& source) {
  const auto first = shown_experts(source);
  const std::string number = first ? fmt::format("{}, ", first->index) : "";
  return source.keys.refuse_missing("leading_dense_block_count", number + "the blocks before the first with experts");
}

// Nothing where the keys that say it are refused, or missing where a layer shows that they are not at their defaults.
std::optional<bool> is_counted(const Source& source, const Block& block, Size count) {
  constexpr std::string_view kLeading = "leading_dense_block_count", kStep = "interleave_moe_layer_step";
  const ExpertRow& row = source.row.experts;
  if (count.is(0)) return false;
  Size dense_layers = option(source, row.leading_key, kLeading, {.low = 0}, 0);
  const Size step = option(source, row.interleave_key, kStep, {}, 1);
  const bool shown_dense = !has_expert_tensors(source, block) && source.tensors.has(block.tensor("ffn_down.weight"));
  const bool every = !step.known() || step.is(1);
  if (row.leading_key && every && shown_dense && !source.keys.has(kLeading))
    dense_layers = missing_dense_layers(source);
  if (!known(count, dense_layers, step)) return std::nullopt;
  return block.index >= dense_layers.value() && (block.index + 1) % step.value() == 0;
}

bool has_experts(const Source& source, const Block& block) {
  const bool routed = has_expert_tensors(source, block);
  switch (source.row.experts.layers) {
    case ExpertLayers::None: {
      const Size count = expert_count(source);
      if (count.known() && count.value() > 0)
        source.refusals.add(
            NotYetError(fmt::format("{} routed experts in architecture '{}'", count.value(), source.row.name)));
      return routed && !count.is(0);
    }
    case ExpertLayers::ByRouter:
      return routed;
    case ExpertLayers::Counted:
      return is_counted(source, block, expert_count(source)).value_or(routed);
  }
  return false;
}

Gating gating(const Source& source) {
  constexpr std::string_view kKey = "expert_gating_func";
  const ExpertRow& row = source.row.experts;
  const auto key = source.keys.integer(kKey, {.low = 0});
  if (!key && row.gating_key == Presence::Required) source.keys.refuse_missing(kKey, "an integer");
  if (!key || !key->known() || key->is(0)) return row.gating;
  const auto said = Gating(key->value() - 1);
  if (row.gating_key == Presence::Absent && said != row.gating)
    source.keys.refuse_unread(kKey, fmt::format("{}", key->value()));
  if (key->value() <= 3) return said;
  source.refusals.add(NotYetError(fmt::format("'{}' = {}; accepted are 1 softmax, 2 sigmoid, 3 softmax of the chosen",
                                              source.keys.full(kKey), key->value())));
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

struct ExpertSizes {
  Size count, used;
  Size width = 0;
};

// Experts form groups, of which the best are kept before experts are chosen.
void read_groups(const Source& source, const ExpertSizes& of, Experts& result) {
  Size groups = source.keys.integer("expert_group_count", {.low = 0}).value_or(0);
  const Size kept = source.keys.integer("expert_group_used_count", {.low = 0}).value_or(0);
  if (groups.is(0) || groups.is(1)) return;
  const int64_t count = of.count.value(), used = of.used.value();
  if (known(of.count, groups) && (count % groups.value() != 0 || groups.value() >= count))
    groups = source.keys.refuse_size("expert_group_count", fmt::format("{}", groups.value()),
                                     fmt::format("a divisor of the {} experts", count));
  const bool few = known(of.count, of.used, groups, kept) && used > count / groups.value() * kept.value();
  if (few || kept.is(0) || (known(groups, kept) && kept.value() > groups.value()))
    source.keys.refuse("expert_group_used_count", fmt::format("{}", kept.value()),
                       fmt::format("1 to the {} groups, and enough for {} experts", groups.value(), used));
  result.groups = groups.value();
  result.kept = kept.value();
}

ExpertSizes read_routing(const Source& source, const Block& block, Experts& result) {
  const ExpertRow& row = source.row.experts;
  ExpertSizes of{.count = expert_count(source), .used = 0};
  of.used =
      source.keys.required_integer("expert_used_count", {.high = of.count.known() ? of.count.value() : Range{}.high});
  read_groups(source, of, result);
  result.gating = gating(source);
  result.normalised = is_normalised(source);
  result.factor = weights_factor(source);
  result.router =
      source.tensors.linear(block.tensor("ffn_gate_inp"), {.rows = of.count, .columns = source.width}, row.router_bias);
  result.selection_bias =
      source.tensors.vector(row.selection_bias, block.tensor("exp_probs_b.bias"), {.columns = of.count});
  return of;
}

void take_experts(const Source& source, const Block& block, const ExpertSizes& of, Experts& result) {
  const Presence bias = source.row.experts.bias;
  const Tensors::Dims in{.experts = of.count, .rows = of.width, .columns = source.width};
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
                               {.experts = in.experts, .rows = source.width, .columns = of.width}, bias);
}

// What a layer without experts has, where the file says that: else `key` is missed.
Size dense_width_instead_of(std::string_view key, const Source& source, const Block& block) {
  return source.keys.has("feed_forward_length") ? required_dense_width(source, block) : missing_width(source, key);
}

Size expert_width(const Source& source, const Block& block, Size used) {
  constexpr std::string_view kKey = "expert_feed_forward_length";
  const Size said = source.keys.integer(kKey, {.low = 0}).value_or(0);
  if (!said.is(0)) return said;
  switch (source.row.experts.width) {
    case ExpertWidth::Required:
      return missing_width(source, kKey);
    case ExpertWidth::Dense:
      return required_dense_width(source, block);
    case ExpertWidth::Share:
      return dense_width_instead_of(kKey, source, block) / used;
  }
  return said;
}

Size shared_width(const Source& source, const Block& block, Size expert_width) {
  constexpr std::string_view kKey = "expert_shared_feed_forward_length";
  const Size said = source.keys.integer(kKey, {.low = 0}).value_or(0);
  if (!said.is(0)) return said;
  switch (source.row.experts.shared_width) {
    case SharedWidth::Required:
      return missing_width(source, kKey);
    case SharedWidth::Counted:
      return source.product({expert_width, source.keys.required_integer("expert_shared_count", {.high = 1024})});
    case SharedWidth::Dense:
      return dense_width_instead_of(kKey, source, block);
  }
  return said;
}

void take_shared(const Source& source, const Block& block, Size expert_width, Experts& result) {
  const ExpertRow& row = source.row.experts;
  source.keys.integer("expert_shared_count", {.low = 0, .high = 1024});
  source.keys.integer("expert_shared_feed_forward_length", {.low = 0});
  const bool there = source.tensors.has(block.tensor("ffn_up_shexp.weight"));
  if (row.shared == Presence::Absent || (row.shared == Presence::Optional && !there)) return;
  result.shared = dense(source, block, shared_width(source, block, expert_width), "_shexp", Presence::Absent);
  result.shared_gate.matrix =
      source.tensors.matrix(row.shared_gate, block.tensor("ffn_gate_inp_shexp.weight"), {.columns = source.width});
}

Experts experts(const Source& source, const Block& block) {
  Experts result{.activation = source.row.activation, .limit = source.row.clamp_limit, .slope = source.row.clamp_slope};
  ExpertSizes of = read_routing(source, block, result);
  of.width = expert_width(source, block, of.used);
  result.count = of.count.value();
  result.used = of.used.value();
  result.width = of.width.value();
  take_experts(source, block, of, result);
  take_shared(source, block, of.width, result);
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
