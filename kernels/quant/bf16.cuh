// BF16: the upper half of a float a weight.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct BF16 {
  static constexpr int kElements = 1, kBytes = 2;
  static __device__ __forceinline__ float decode(const uint8_t* row, int column) {
    return __uint_as_float(static_cast<uint32_t>(load_short(row + 2 * static_cast<int64_t>(column))) << 16);
  }
};

}  // namespace LANE_NAMESPACE
