// The architectures that lanec compiles: rows only. docs/architectures.md says what each was checked against.
#include "lane/architectures.h"

#include <algorithm>

namespace lane {
namespace {

using enum Presence;

constexpr Architecture kArchitectures[] = {
    {
        .name = "gemma3",
        .mixer_post_norm = "post_attention_norm",
        .ffn_post_norm = "post_ffw_norm",
        .head_norm = HeadNorm::EachHead,
        .wide_scale_blocks = 62,
        .pairing = Pairing::Halves,
        .window = Optional,
        .window_period = 6,
        .window_base = 10000,
        .window_unscaled = true,
        .activation = Activation::Gelu,
        .embedding_scale = Scale::RootOfWidth,
        .logit_cap_key = true,
    },
    {
        .name = "llama",
        .qkv_bias = Optional,
        .output_bias = Optional,
        .frequency_factors = true,
        .ffn_bias = Optional,
        .experts = {.layers = ExpertLayers::Counted, .normalised = true},
    },
    {
        .name = "qwen2",
        .qkv_bias = Required,
        .pairing = Pairing::Halves,
        .head_bias = Optional,
    },
    {
        .name = "qwen3",
        .head_norm = HeadNorm::EachHead,
        .pairing = Pairing::Halves,
    },
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  const auto row = std::ranges::find(kArchitectures, name, &Architecture::name);
  return row == std::end(kArchitectures) ? nullptr : row;
}

}  // namespace lane
