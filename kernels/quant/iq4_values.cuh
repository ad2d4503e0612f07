// IQ4_NL and IQ4_XS: a nibble stands for one of sixteen unevenly spaced integers.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

/// -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, four bytes a word.
__device__ __forceinline__ void nibbles_to_iq4_values(uint32_t (&words)[8]) {
  const uint32_t values[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
  look_up_bytes(values, words);
}

}  // namespace LANE_NAMESPACE
