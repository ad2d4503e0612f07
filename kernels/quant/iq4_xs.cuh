// IQ4_XS: 256 weights in 136 bytes: half d; 16 bits, two of each group's scale; four bytes, a nibble of each group's
// scale; 128 bytes of nibbles, 16 bytes a group. w = d (scale - 32) value(nibble).
#pragma once
#include "quant/group.cuh"
#include "quant/iq4_values.cuh"

namespace LANE_NAMESPACE {

struct IQ4_XS {
  static constexpr int kElements = 256, kBytes = 136, kScales = 1;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    unpack_nibbles<4>(block_of<IQ4_XS>(row, group) + 8 + 16 * place_in_block<IQ4_XS>(group), words);
    nibbles_to_iq4_values(words);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&)[1]) {
    const uint8_t* block = block_of<IQ4_XS>(row, group);
    const int g = place_in_block<IQ4_XS>(group);
    const int low = block[4 + g / 2] >> (4 * (g % 2)) & 15, high = load_short(block + 2) >> (2 * g) & 3;
    scale[0] = load_half(block) * static_cast<float>((low | high << 4) - 32);
  }
};

}  // namespace LANE_NAMESPACE
