// Barriers among some warps of a block. The portable body is one barrier of the whole block, so every thread of the
// block meets exactly one group_barrier() of a round: threads that are in no group call skip_group_barrier() instead.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// Waits for all `Threads` threads (whole warps) of group 0 to 14. Shared memory written before it can be read after
/// it.
template <int Threads>
__device__ __forceinline__ void group_barrier(int group) {
#if defined(__CUDACC__)
  if (Threads == 32)
    __syncwarp();
  else
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(Threads) : "memory");
#else
  (void)group;
  __syncthreads(0);
#endif
}
__device__ __forceinline__ void skip_group_barrier() {
#if !defined(__CUDACC__)
  __syncthreads(0);
#endif
}

}  // namespace LANE_NAMESPACE
