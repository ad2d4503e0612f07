// Dot products of 32 weights: the inner loops of every product. Each has one order of sums, so that both bodies give
// the same bits; the host's is spelled in vectors because no compiler may reorder a loop's sums on its own.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// sum of w[i] x[i], in double: four sums, each of every fourth product, s[0..3]; then (s0 + s2) + (s1 + s3). The
/// product of two floats is exact in double, so contraction into a fused operation changes nothing.
__device__ __forceinline__ double dot_floats(const float (&w)[32], const float* x) {
#if defined(__CUDACC__)
  double s[4] = {0.0, 0.0, 0.0, 0.0};
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
#pragma unroll
    for (int j = 0; j < 4; j++) s[j] += static_cast<double>(w[i + j]) * static_cast<double>(x[i + j]);
  }
#else
  typedef double Doubles __attribute__((vector_size(32)));
  Doubles s = {0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < 32; i += 4) {
    const Doubles four_w = {w[i], w[i + 1], w[i + 2], w[i + 3]}, four_x = {x[i], x[i + 1], x[i + 2], x[i + 3]};
    s += four_w * four_x;
  }
#endif
  return (s[0] + s[2]) + (s[1] + s[3]);
}

}  // namespace LANE_NAMESPACE
