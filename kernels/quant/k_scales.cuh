// Q4_K and Q5_K: half d, half dmin, then eight 6-bit scales and eight 6-bit minima in 12 bytes, one of each a group.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

/// The scale and the minimum of group `g` of the block. For the first four groups each is the low six bits of a byte;
/// for the others its low four bits are a nibble of bytes 8 to 11, and its high two the spare bits of bytes 0 to 7.
__device__ __forceinline__ void k_scales(const uint8_t* block, int g, float (&scale)[1], float (&minimum)[1]) {
  const uint8_t* packed = block + 4;
  int s, m;
  if (g < 4) {
    s = packed[g] & 63;
    m = packed[g + 4] & 63;
  } else {
    s = (packed[g + 4] & 15) | (packed[g - 4] >> 6) << 4;
    m = packed[g + 4] >> 4 | (packed[g] >> 6) << 4;
  }
  scale[0] = load_half(block) * static_cast<float>(s);
  minimum[0] = load_half(block + 2) * static_cast<float>(m);
}

}  // namespace LANE_NAMESPACE
