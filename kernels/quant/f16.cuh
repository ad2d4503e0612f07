// F16: an IEEE half a weight.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct F16 {
  static constexpr int kElements = 1, kBytes = 2;
  static __device__ __forceinline__ float decode(const uint8_t* row, int column) {
    return load_half(row + 2 * static_cast<int64_t>(column));
  }
};

}  // namespace LANE_NAMESPACE
