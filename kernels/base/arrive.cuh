// A counter that blocks of one launch arrive at.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// One thread of a block, behind a barrier of the block: counts the block in and returns how many came before. What the
/// block wrote ahead of that barrier, whoever arrives later can read behind a barrier of its own: an acquire and a
/// release in the one instruction, where a fence beside it would be of the strongest kind.
__device__ __forceinline__ int arrive(int* counter) {
#if defined(__CUDACC__)
  int before;
  asm volatile("atom.add.acq_rel.gpu.global.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
#else
  return atomicAdd(counter, 1);
#endif
}

/// Whether this block is the last of `active` to arrive: what the others wrote before can then be read. By all threads;
/// leaves a zero.
__device__ __forceinline__ bool arrives_last(int* arrived, int active) {
  __shared__ int last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = arrive(arrived) == active - 1;
    if (last) *arrived = 0;
  }
  __syncthreads();
  return last;
}

}  // namespace LANE_NAMESPACE
