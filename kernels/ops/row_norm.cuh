// The rms norm of one row by one block, for the kernel that is a norm and for those that begin with one: the same bits.
#pragma once
#include "ops/block.cuh"

namespace LANE_NAMESPACE {

/// Of whoever norms a whole row: the number sets the order of its sum.
[[maybe_unused]] constexpr int kRowNormThreads = 256;

/// One value of a norm, and what is added to it. Never contracted: the same bits in every kernel.
__device__ __forceinline__ float normed_value(float x, float factor, float weight, float bias, float residual) {
  return __fmul_rn(__fmul_rn(x, factor), weight) + bias + residual;
}

/// Of the sum of `width` squares.
__device__ inline float rms_factor_of_sum(float sum, int width, float epsilon) {
  return rsqrtf(sum / static_cast<float>(width) + epsilon);
}
/// 1 / sqrt(squares / width + epsilon) in every thread, of all threads' squares. `scratch` is shared memory of
/// kMostWarps elements. In float: a row's squares have one sign, and their sum's error is that of one rounding or two.
__device__ inline float rms_factor_of(float squares, int width, float epsilon, float* scratch) {
  return rms_factor_of_sum(block_sum(squares, scratch), width, epsilon);
}
/// The same of `width` values.
__device__ inline float rms_factor(const float* x, int width, float epsilon, float* scratch) {
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares = fmaf(x[i], x[i], squares);
  return rms_factor_of(squares, width, epsilon, scratch);
}

}  // namespace LANE_NAMESPACE
