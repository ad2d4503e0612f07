// Q4_0: 32 weights in 18 bytes: half d; 16 bytes of nibbles q; w = d (q - 8).
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q4_0 {
  static constexpr int kElements = 32, kBytes = 18, kScales = 1;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    unpack_nibbles<2>(block_of<Q4_0>(row, group) + 2, words);
    LANE_UNROLL
    for (uint32_t& word : words) word = subtract_from_bytes<8>(word);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&)[1]) {
    scale[0] = load_half(block_of<Q4_0>(row, group));
  }
};

}  // namespace LANE_NAMESPACE
