// Q5_1: 32 weights in 24 bytes: halves d, m; 32 high bits, bit i of weight i; 16 bytes of nibbles; w = d q + m.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q5_1 {
  static constexpr int kElements = 32, kBytes = 24, kScales = 1;
  static constexpr bool kHasMinimum = true;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    const uint8_t* block = block_of<Q5_1>(row, group);
    const uint32_t high = load_word<4>(block + 4);
    unpack_nibbles<4>(block + 8, words);
    LANE_UNROLL
    for (int i = 0; i < 8; i++) words[i] |= spread_four_bits(high >> (4 * i)) << 4;
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&minimum)[1]) {
    const uint8_t* block = block_of<Q5_1>(row, group);
    scale[0] = load_half(block);
    minimum[0] = -load_half(block + 2);
  }
};

}  // namespace LANE_NAMESPACE
