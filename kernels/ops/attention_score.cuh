// Scores of attention, in powers of two: what its kernels on tensor cores share.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// score = q·k * scale, soft-capped at `limit` where that is not 0; weight = 2^(score * log2(e)).
struct AttentionScore {
  float scale, limit;
  static constexpr float kLog2e = 1.4426950408889634f;
  /// What queries are multiplied with before their products are taken.
  __device__ __forceinline__ float query_scale() const { return limit > 0.f ? scale : scale * kLog2e; }
  /// The exponent of two that such a product stands for.
  __device__ __forceinline__ float of(float dot) const {
    return limit > 0.f ? limit * kLog2e * tanhf(__fdividef(dot, limit)) : dot;
  }
  /// The same of several, by one branch.
  template <int Count>
  __device__ __forceinline__ void apply(float (&dots)[Count]) const {
    if (!(limit > 0.f)) return;
    LANE_UNROLL
    for (int i = 0; i < Count; i++) dots[i] = of(dots[i]);
  }
};

/// Weights are at most 1: scaled up, small ones keep their bits as halves.
constexpr float kAttentionWeightScale = 4096.f;

}  // namespace LANE_NAMESPACE
