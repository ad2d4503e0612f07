// How a fused product sees its input: x as it is, or normed, or quantized, prepared by each block in its own shared
// memory. What comes out has the bits that the launches kept apart would give.
#pragma once
#include "ops/matrix_product_int8.cuh"
#include "ops/row_norm.cuh"

namespace LANE_NAMESPACE {

/// x, times norm and the rms factor where norm is not null: value i of a row whose factor is given.
__device__ __forceinline__ float normed_value(const float* x, const float* norm, float factor, int i) {
  return norm ? x[i] * factor * norm[i] : x[i];
}

/// Float activations; dynamic shared memory holds the normed rows, tokens * columns floats, where there is a norm.
struct Floats {
  static __device__ const uint8_t* prepare(uint8_t* shared, const float* x, const float* norm, float epsilon,
                                           int columns, int tokens) {
    if (!norm) return reinterpret_cast<const uint8_t*>(x);
    __shared__ float scratch[kMostWarps];
    float* normed = reinterpret_cast<float*>(shared);
    for (int t = 0; t < tokens; t++) {
      const float* row = x + int64_t(t) * columns;
      const float factor = rms_factor(row, columns, epsilon, scratch);
      for (int i = threadIdx.x; i < columns; i += blockDim.x)
        normed[int64_t(t) * columns + i] = normed_value(row, norm, factor, i);
    }
    __syncthreads();
    return shared;
  }
  template <class Q>
  static __device__ __forceinline__ FloatActivations<Q> rows(const uint8_t* prepared, int columns) {
    return FloatActivations<Q>{reinterpret_cast<const float*>(prepared), columns};
  }
};

/// Integers of PLANES bytes; dynamic shared memory holds the rows' quantized groups.
template <int PLANES>
struct Quantized {
  static __device__ const uint8_t* prepare(uint8_t* shared, const float* x, const float* norm, float epsilon,
                                           int columns, int tokens) {
    __shared__ float scratch[kMostWarps];
    auto* groups = reinterpret_cast<QuantizedGroup<PLANES>*>(shared);
    const int in_row = columns / kGroup, warps = static_cast<int>(blockDim.x / kWarpLanes);
    for (int t = 0; t < tokens; t++) {
      const float* row = x + int64_t(t) * columns;
      const float factor = norm ? rms_factor(row, columns, epsilon, scratch) : 1.0f;
      for (int g = warp_index(); g < in_row; g += warps)
        quantize_group(groups + t * in_row + g, normed_value(row, norm, factor, g * kGroup + lane_index()));
    }
    __syncthreads();
    return shared;
  }
  template <class Q>
  static __device__ __forceinline__ QuantizedActivations<Q, PLANES> rows(const uint8_t* prepared, int columns) {
    return QuantizedActivations<Q, PLANES>(prepared, columns);
  }
};
using Int8x2 = Quantized<2>;
using Int8 = Quantized<1>;

}  // namespace LANE_NAMESPACE
