// Barriers among some warps of a block. The portable body is one barrier of the whole block, so every thread of the
// block meets exactly one group_barrier() of a round: threads that are in no group call skip_group_barrier() instead.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// Waits for all `Threads` threads (whole warps) of group 0 to 10. Shared memory written before it can be read after
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
/// Turns among fours of warps: 128 threads wait for theirs, 0 to 3, until 128 others have given it to them. The
/// portable body has none.
__device__ __forceinline__ void await_turn([[maybe_unused]] int turn) {
#if defined(__CUDACC__)
  asm volatile("bar.sync %0, 256;" ::"r"(turn + 12) : "memory");
#endif
}
__device__ __forceinline__ void give_turn([[maybe_unused]] int turn) {
#if defined(__CUDACC__)
  asm volatile("bar.arrive %0, 256;" ::"r"(turn + 12) : "memory");
#endif
}
__device__ __forceinline__ void skip_group_barrier() {
#if !defined(__CUDACC__)
  __syncthreads(0);
#endif
}

}  // namespace LANE_NAMESPACE
