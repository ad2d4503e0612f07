// Q3_K: 256 weights in 110 bytes: 32 bytes of high bits, bit g of byte l for weight 32 g + l; 64 bytes of low 2-bit
// parts, ordered as in Q2_K; 12 bytes of 6-bit scales, one for 16 weights; half d. w = d (scale - 32) (q - 4).
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q3_K {
  static constexpr int kElements = 256, kBytes = 110, kScales = 2;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const uint8_t* block = block_of<Q3_K>(row, group);
    const int g = place_in_block<Q3_K>(group), shift = 2 * (g % 4);
    uint32_t high[8];
    load_words<2>(block, high);
    load_words<2>(block + 32 + 32 * (g / 4), words);
    LANE_UNROLL
    for (int i = 0; i < 8; i++) {
      words[i] = subtract_from_bytes<4>((words[i] >> shift & 0x03030303u) | (high[i] >> g & 0x01010101u) << 2);
    }
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[2], float (&)[2]) {
    const uint8_t *block = block_of<Q3_K>(row, group), *packed = block + 96;
    const float d = load_half(block + 108);
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      // Scale s: its low four bits in nibble s / 8 of byte s % 8, its high two in bits 2 (s / 4) of byte 8 + s % 4.
      const int s = 2 * place_in_block<Q3_K>(group) + i;
      const int low = packed[s % 8] >> (4 * (s / 8)) & 15, high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
      scale[i] = d * static_cast<float>((low | high << 4) - 32);
    }
  }
};

}  // namespace LANE_NAMESPACE
