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

/// The sum of the products of COUNT words' signed bytes; `b` is at a multiple of 16 bytes. Exact: 32 products of bytes
/// fit an int.
template <int COUNT>
__device__ __forceinline__ int dot_bytes(const uint32_t* a, const uint32_t* b) {
  int sum = 0;
#if defined(__CUDACC__)
#pragma unroll
  for (int i = 0; i < COUNT; i += 4) {
    const int4 four = *reinterpret_cast<const int4*>(b + i);
    sum = __dp4a(static_cast<int>(a[i]), four.x, sum);
    sum = __dp4a(static_cast<int>(a[i + 1]), four.y, sum);
    sum = __dp4a(static_cast<int>(a[i + 2]), four.z, sum);
    sum = __dp4a(static_cast<int>(a[i + 3]), four.w, sum);
  }
#else
  // Widened first: compilers know products of shorts, summed in pairs, as one instruction.
  const int8_t *narrow_x = reinterpret_cast<const int8_t*>(a), *narrow_y = reinterpret_cast<const int8_t*>(b);
  int16_t x[4 * COUNT], y[4 * COUNT];
  for (int i = 0; i < 4 * COUNT; i++) x[i] = narrow_x[i];
  for (int i = 0; i < 4 * COUNT; i++) y[i] = narrow_y[i];
  for (int i = 0; i < 4 * COUNT; i++) sum += x[i] * y[i];
#endif
  return sum;
}

}  // namespace LANE_NAMESPACE
