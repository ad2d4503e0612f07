// Weights that are no numbers: what a damaged checkpoint holds, found while it is loaded.
#pragma once
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

__device__ __forceinline__ bool is_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }

/// Whether a format calls the group's scale no number, though decoding gives one. Formats overload it.
template <class Q>
__device__ __forceinline__ bool is_no_number(Q, const uint8_t*, int) {
  return false;
}

template <class Q, bool FLOATS = Q::kElements == 1>
struct FirstBad;

/// A group's place that is not finite first; kGroup where there is none. `count`: of its weights, those that exist.
template <class Q>
struct FirstBad<Q, false> {
  static __device__ __forceinline__ int in_group(const uint8_t* stored, int group, int) {
    float scale[Q::kScales], minimum[Q::kScales] = {};
    Q::scales(stored, group, scale, minimum);
    if (is_no_number(Q(), stored, group)) return 0;
    for (int s = 0; s < Q::kScales; s++) {
      if (!is_finite(scale[s]) || !is_finite(minimum[s])) return s * (kGroup / Q::kScales);
    }
    return kGroup;
  }
};

template <class Q>
struct FirstBad<Q, true> {
  static __device__ __forceinline__ int in_group(const uint8_t* stored, int group, int count) {
    for (int i = 0; i < count; i++) {
      if (!is_finite(Q::decode(stored, group * kGroup + i))) return i;
    }
    return kGroup;
  }
};

/// *first = the lowest index of a weight that is not finite, or as it was where that is lower. `stored`: weights
/// [begin, begin + count) of a matrix, whole rows as in the file. Grid: a thread a group of 32.
template <class Q>
__global__ void first_not_finite(unsigned long long* first, const uint8_t* stored, int64_t begin, int64_t count) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t left = count - group * kGroup;
  if (left <= 0) return;
  const int at =
      FirstBad<Q>::in_group(stored, static_cast<int>(group), left < kGroup ? static_cast<int>(left) : kGroup);
  if (at < kGroup) atomicMin(first, static_cast<unsigned long long>(begin + group * kGroup + at));
}

}  // namespace LANE_NAMESPACE
