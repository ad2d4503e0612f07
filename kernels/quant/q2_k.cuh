// Q2_K: 256 weights in 84 bytes: 16 bytes, each a scale (low nibble) and a minimum (high) of 16 weights; 64 bytes of
// 2-bit q; halves d, dmin. w = d scale q - dmin minimum. A half of the block (128 weights) has 32 bytes of q: bits 2 j
// and 2 j + 1 of byte l are weight 32 j + l.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q2_K {
  static constexpr int kElements = 256, kBytes = 84, kScales = 2;
  static constexpr bool kHasMinimum = true;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const int g = place_in_block<Q2_K>(group), shift = 2 * (g % 4);
    load_words<4>(block_of<Q2_K>(row, group) + 16 + 32 * (g / 4), words);
    LANE_UNROLL
    for (uint32_t& word : words) word = word >> shift & 0x03030303u;
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[2], float (&minimum)[2]) {
    const uint8_t* block = block_of<Q2_K>(row, group);
    const float d = load_half(block + 80), dmin = load_half(block + 82);
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      const int packed = block[2 * place_in_block<Q2_K>(group) + i];
      scale[i] = d * static_cast<float>(packed & 15);
      minimum[i] = dmin * static_cast<float>(packed >> 4);
    }
  }
};

}  // namespace LANE_NAMESPACE
