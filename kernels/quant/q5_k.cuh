// Q5_K: 256 weights in 176 bytes: halves d, dmin; 12 bytes of scales and minima; 32 bytes of high bits, bit g of byte l
// for weight 32 g + l; 128 bytes of nibbles as in Q4_K. w = d scale q - dmin minimum.
#pragma once
#include "quant/group.cuh"
#include "quant/k_scales.cuh"

namespace LANE_NAMESPACE {

struct Q5_K {
  static constexpr int kElements = 256, kBytes = 176, kScales = 1;
  static constexpr bool kHasMinimum = true;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const uint8_t* block = block_of<Q5_K>(row, group);
    const int g = place_in_block<Q5_K>(group), shift = 4 * (g % 2);
    uint32_t high[8];
    load_words<16>(block + 16, high);
    load_words<16>(block + 48 + 32 * (g / 2), words);
    LANE_UNROLL
    for (int i = 0; i < 8; i++) words[i] = (words[i] >> shift & 0x0f0f0f0fu) | (high[i] >> g & 0x01010101u) << 4;
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&minimum)[1]) {
    k_scales(block_of<Q5_K>(row, group), place_in_block<Q5_K>(group), scale, minimum);
  }
};

}  // namespace LANE_NAMESPACE
