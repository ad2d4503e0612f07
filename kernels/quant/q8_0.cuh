// Q8_0: 32 weights in 34 bytes: half d; 32 signed bytes q; w = d q.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct Q8_0 {
  static constexpr int kElements = 32, kBytes = 34, kScales = 1;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    load_words<2>(block_of<Q8_0>(row, group) + 2, words);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&)[1]) {
    scale[0] = load_half(block_of<Q8_0>(row, group));
  }
};

}  // namespace LANE_NAMESPACE
