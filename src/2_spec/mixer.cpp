#include "describe.h"

namespace lane {
namespace {

// As tensors tell; nothing where they do not.
std::optional<bool> shown_recurrent(const Source& source, const Block& block) {
  const bool attention = source.tensors.has(block.tensor("attn_output.weight"));
  const bool recurrence = source.tensors.has(block.tensor("shortconv.out_proj.weight")) ||
                          source.tensors.has(block.tensor("ssm_out.weight"));
  return attention == recurrence ? std::nullopt : std::optional(recurrence);
}

// 1 in a layer whose tokens a recurrence mixes, else 0, as the keys say; not known where they are refused.
Size said_recurrent(const Source& source, const Block& block) {
  const auto index = size_t(block.index);
  if (source.row.mixers == Mixers::Convolution) {
    const auto groups = source.keys.required_by_layer("attention.head_count_kv", source.blocks, {.low = 0});
    return groups[index].known() ? Size(groups[index].is(0)) : Size::unknown();
  }
  // Files may say both; then the layers decide.
  constexpr std::string_view kInterval = "full_attention_interval";
  const Size interval = source.keys.integer(kInterval).value_or(4);
  if (const auto layers = source.keys.by_layer("attention.recurrent_layers", source.blocks, {.low = 0, .high = 1}))
    return (*layers)[index];
  if (!interval.known()) return Size::unknown();
  const bool said = (block.index + 1) % interval.value() != 0;
  if (source.keys.has(kInterval) || shown_recurrent(source, block).value_or(said) == said) return said;
  return source.keys.refuse_missing(kInterval, "the layers from one with attention to the next");
}

bool is_recurrent(const Source& source, const Block& block) {
  const Size said = said_recurrent(source, block);
  return said.known() ? !said.is(0) : shown_recurrent(source, block).value_or(true);
}

}  // namespace

Mixer mixer(const Source& source, const Block& block) {
  switch (source.row.mixers) {
    case Mixers::Attention:
      return attention(source, block);
    case Mixers::Latent:
      return latent_attention(source, block);
    case Mixers::Convolution:
      if (is_recurrent(source, block)) return short_convolution(source, block);
      return attention(source, block);
    case Mixers::Delta:
      if (is_recurrent(source, block)) return delta_rule(source, block);
      return attention(source, block);
  }
  return attention(source, block);
}

}  // namespace lane
