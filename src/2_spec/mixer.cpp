#include "describe.h"

namespace lane {
namespace {

// Layers whose tokens a recurrence mixes, as the keys say.
bool is_said_recurrent(const Source& source, const Block& block) {
  const auto index = size_t(block.index);
  if (source.row.mixers == Mixers::Convolution) {
    const auto groups = source.keys.by_layer("attention.head_count_kv", source.blocks, {.low = 0});
    return groups && (*groups)[index] == 0;
  }
  // Files may say both; then the layers decide.
  const int64_t interval = source.keys.integer("full_attention_interval").value_or(4);
  if (const auto layers = source.keys.by_layer("attention.recurrent_layers", source.blocks, {.low = 0, .high = 1}))
    return (*layers)[index] != 0;
  return (block.index + 1) % interval != 0;
}

// Where the keys are refused, tensors tell what the layer was meant to be.
bool is_recurrent(const Source& source, const Block& block) {
  const bool said = is_said_recurrent(source, block);
  return source.refusals.doubted() ? !source.tensors.has(block.tensor("attn_output.weight")) : said;
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
