// Q4_K: 256 weights in 144 bytes: halves d, dmin; 12 bytes of scales and minima; 128 bytes of nibbles q, 32 bytes for
// two groups, the low nibbles the first. w = d scale q - dmin minimum.
#pragma once
#include "quant/group.cuh"
#include "quant/k_scales.cuh"

namespace LANE_NAMESPACE {

struct Q4_K {
  static constexpr int kElements = 256, kBytes = 144, kScales = 1;
  static constexpr bool kHasMinimum = true;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const int g = place_in_block<Q4_K>(group), shift = 4 * (g % 2);
    load_words<16>(block_of<Q4_K>(row, group) + 16 + 32 * (g / 2), words);
    LANE_UNROLL
    for (uint32_t& word : words) word = word >> shift & 0x0f0f0f0fu;
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&minimum)[1]) {
    k_scales(block_of<Q4_K>(row, group), place_in_block<Q4_K>(group), scale, minimum);
  }
};

}  // namespace LANE_NAMESPACE
