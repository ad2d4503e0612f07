#include "describe.h"

namespace lane {
namespace {

// Layers whose tokens a recurrence mixes.
bool is_recurrent(const Source& source, const Block& block) {
  const auto index = size_t(block.index);
  if (source.row.mixers == Mixers::Convolution) {
    const auto groups = source.keys.by_layer("attention.head_count_kv", source.blocks, {.low = 0});
    return groups && (*groups)[index] == 0;
  }
  if (const auto layers = source.keys.by_layer("attention.recurrent_layers", source.blocks, {.low = 0, .high = 1}))
    return (*layers)[index] != 0;
  return (block.index + 1) % source.keys.integer("full_attention_interval").value_or(4) != 0;
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
