// F32: a float a weight.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

struct F32 {
  static constexpr int kElements = 1, kBytes = 4;
  static __device__ __forceinline__ float decode(const uint8_t* row, int column) {
    return __uint_as_float(load_word<4>(row + 4 * static_cast<int64_t>(column)));
  }
};

}  // namespace LANE_NAMESPACE
