// Q5_0: 32 weights in 22 bytes: half d; 32 high bits, bit i of weight i; 16 bytes of nibbles; w = d (q - 16).
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q5_0 {
  static constexpr int kElements = 32, kBytes = 22, kScales = 1;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const uint8_t* block = block_of<Q5_0>(row, group);
    const uint32_t high = load_word<2>(block + 2);
    unpack_nibbles<2>(block + 6, words);
    LANE_UNROLL
    for (int i = 0; i < 8; i++) words[i] = subtract_from_bytes<16>(words[i] | spread_four_bits(high >> (4 * i)) << 4);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&)[1]) {
    scale[0] = load_half(block_of<Q5_0>(row, group));
  }
};

}  // namespace LANE_NAMESPACE
