// IQ4_NL: 32 weights in 18 bytes: half d; 16 bytes of nibbles; w = d value(nibble).
#pragma once
#include "quant/group.cuh"
#include "quant/iq4_values.cuh"

namespace LANE_NAMESPACE {

struct IQ4_NL {
  static constexpr int kElements = 32, kBytes = 18, kScales = 1;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    unpack_nibbles<2>(block_of<IQ4_NL>(row, group) + 2, words);
    nibbles_to_iq4_values(words);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&)[1]) {
    scale[0] = load_half(block_of<IQ4_NL>(row, group));
  }
};

}  // namespace LANE_NAMESPACE
