// MXFP4: 32 weights in 17 bytes: a byte e, the exponent of the scale; 16 bytes of nibbles, each a sign and a 3-bit
// float (0 0.5 1 1.5 2 3 4 6). Doubled, those are integers: w = 2^(e - 128) value(nibble).
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct MXFP4 {
  static constexpr int kElements = 32, kBytes = 17, kScales = 1;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ void unpack(const uint8_t* row, int group, uint32_t (&words)[8]) {
    unpack_nibbles<1>(block_of<MXFP4>(row, group) + 1, words);
    // 0 1 2 3 4 6 8 12 and their negatives, four bytes a word.
    const uint32_t values[4] = {0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu};
    look_up_bytes(values, words);
  }
  static __device__ __forceinline__ void scales(const uint8_t* row, int group, float (&scale)[1], float (&)[1]) {
    // A float's exponent field is e - 1; 2^-128 and 2^-127 are subnormal.
    const uint32_t e = block_of<MXFP4>(row, group)[0];
    scale[0] = __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  }
};

/// An exponent of 255 stands for NaN.
__device__ __forceinline__ bool is_no_number(MXFP4, const uint8_t* row, int group) {
  return block_of<MXFP4>(row, group)[0] == 255;
}

}  // namespace LANE_NAMESPACE
