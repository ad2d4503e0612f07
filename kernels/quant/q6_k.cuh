// Q6_K: 256 weights in 210 bytes: 128 bytes of low nibbles, 64 bytes of high 2-bit parts, 16 signed byte scales, one
// for 16 weights; half d. w = d scale (q - 32). A half of the block has 64 bytes of nibbles and 32 of high parts:
// weight 32 j + l has nibble j / 2 of byte 32 (j % 2) + l, and bits 2 j, 2 j + 1 of byte l.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q6_K {
  static constexpr int kElements = 256, kBytes = 210, kScales = 2;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const uint8_t* block = block_of<Q6_K>(row, group);
    const int g = place_in_block<Q6_K>(group), half = g / 4, j = g % 4;
    uint32_t high[8];
    load_words<2>(block + 128 + 32 * half, high);
    load_words<2>(block + 64 * half + 32 * (j % 2), words);
    LANE_UNROLL
    for (int i = 0; i < 8; i++) {
      const uint32_t low = words[i] >> (4 * (j / 2)) & 0x0f0f0f0fu;
      words[i] = subtract_from_bytes<32>(low | (high[i] >> (2 * j) & 0x03030303u) << 4);
    }
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[2], float (&)[2]) {
    const uint8_t* block = block_of<Q6_K>(row, group);
    const float d = load_half(block + 208);
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      scale[i] = d * static_cast<float>(static_cast<int8_t>(block[192 + 2 * place_in_block<Q6_K>(group) + i]));
    }
  }
};

}  // namespace LANE_NAMESPACE
