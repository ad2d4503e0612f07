// Reductions over a block. The order of a sum depends on blockDim.x alone, which a kernel's launch takes from the width
// of what it sums and never from the number of tokens: so a token's bits do not depend on the batch around it.
#pragma once
#include "base/device.cuh"
#include "base/namespace.h"
#include "base/warp.cuh"

namespace LANE_NAMESPACE {

constexpr int kMostWarps = 32;  // of a block: the size of `scratch` below

/// The sum of all threads' values, in every thread. `scratch` is shared memory of kMostWarps elements.
template <class T>
__device__ inline T block_sum(T value, T* scratch) {
  const int lane = lane_index(), warp = warp_index(), warps = blockDim.x / kWarpLanes;
  value = warp_sum(value);
  if (warps == 1) return value;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  T total = lane < warps ? scratch[lane] : T(0);
  total = warp_sum(total);
  __syncthreads();  // the caller may reduce again into the same scratch
  return total;
}

/// The greatest of all threads' values, in every thread.
__device__ inline float block_max(float value, float* scratch) {
  const int lane = lane_index(), warp = warp_index(), warps = blockDim.x / kWarpLanes;
  value = warp_max(value);
  if (warps == 1) return value;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  float most = lane < warps ? scratch[lane] : -INFINITY;
  most = warp_max(most);
  __syncthreads();
  return most;
}

}  // namespace LANE_NAMESPACE
