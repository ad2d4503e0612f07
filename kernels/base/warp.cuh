// Reductions over a warp. All 32 lanes call them. The order of sums is one: lane i takes lane i + 16, then i + 8, 4, 2,
// 1; so a sum has the same bits on every chip.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

constexpr int kWarpLanes = 32;
/// The lane that holds warp_sum_to_leader's result.
[[maybe_unused]] constexpr int kWarpLeader = 31;

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x & 31u); }
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x >> 5); }

#if defined(__CUDACC__)

template <class T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int half = 16; half; half /= 2) v += __shfl_xor_sync(LANE_FULL_WARP, v, half);
  return v;
}
template <class T>
__device__ __forceinline__ T half_warp_sum(T v) {
#pragma unroll
  for (int half = 8; half; half /= 2) v += __shfl_xor_sync(LANE_FULL_WARP, v, half);
  return v;
}
template <class T>
__device__ __forceinline__ T warp_max(T v) {
#pragma unroll
  for (int half = 16; half; half /= 2) {
    const T other = __shfl_xor_sync(LANE_FULL_WARP, v, half);
    v = v > other ? v : other;
  }
  return v;
}
template <class T>
__device__ __forceinline__ T warp_sum_to_leader(T v) {
  return warp_sum(v);
}

#else

/// Every lane gets the sum, in T: float, double or int.
template <class T>
HOST_CHIP_INLINE T warp_sum(T v, int line = __builtin_LINE()) {
  return host_chip::reduce_warp<T, host_chip::Add>(v, line);
}
/// Every lane gets the sum over its own half of the warp, lanes 0 to 15 or 16 to 31.
template <class T>
HOST_CHIP_INLINE T half_warp_sum(T v, int line = __builtin_LINE()) {
  return host_chip::reduce_warp<T, host_chip::Add, 16>(v, line);
}
/// Every lane gets the greatest value. NaN is not ordered: keep it out.
template <class T>
HOST_CHIP_INLINE T warp_max(T v, int line = __builtin_LINE()) {
  return host_chip::reduce_warp<T, host_chip::Greater>(v, line);
}
/// Lane kWarpLeader alone gets the sum; what the others get is undefined (here NaN). Cheaper than warp_sum on the host
/// chip, where no lane need wait.
template <class T>
HOST_CHIP_INLINE T warp_sum_to_leader(T v) {
  return host_chip::sum_to_leader(v);
}

#endif

/// The greatest value over the warp, and the smallest index that has it.
struct Best {
  float value;
  int index;
};
__device__ __forceinline__ Best better(Best a, Best b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}
__device__ __forceinline__ Best warp_best(Best v) {
  LANE_UNROLL
  for (int half = 16; half; half /= 2) {
    Best other;
    other.value = __shfl_xor_sync(LANE_FULL_WARP, v.value, half);
    other.index = __shfl_xor_sync(LANE_FULL_WARP, v.index, half);
    v = better(v, other);
  }
  return v;
}

}  // namespace LANE_NAMESPACE
