// The rms norm of one row by one block, for the kernel that is a norm and for those that begin with one: the same bits.
#pragma once
#include "ops/block.cuh"

namespace LANE_NAMESPACE {

/// Of whoever norms a whole row: the number sets the order of its sum.
[[maybe_unused]] constexpr int kRowNormThreads = 256;

/// 1 / sqrt(mean(x^2) + epsilon) of `width` values, in every thread. `scratch` is shared memory of kMostWarps elements.
__device__ inline float rms_factor(const float* x, int width, float epsilon, double* scratch) {
  double squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += double(x[i]) * double(x[i]);
  squares = block_sum(squares, scratch);
  return float(1.0 / sqrt(squares / width + double(epsilon)));
}

}  // namespace LANE_NAMESPACE
