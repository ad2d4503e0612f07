// Q4_1: 32 weights in 20 bytes: halves d, m; 16 bytes of nibbles q; w = d q + m.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q4_1 {
  static constexpr int kElements = 32, kBytes = 20, kScales = 1;
  static constexpr bool kHasMinimum = true;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    unpack_nibbles<4>(block_of<Q4_1>(row, group) + 4, words);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&minimum)[1]) {
    const uint8_t* block = block_of<Q4_1>(row, group);
    scale[0] = load_half(block);
    minimum[0] = -load_half(block + 2);
  }
};

}  // namespace LANE_NAMESPACE
