// Asynchronous copies of 16 bytes a thread from global into shared memory (capability 8.0 and up), in groups: a thread
// ends a group after its copies, and waits until no more than so many of its own groups are on their way. Other threads
// read what arrived behind a barrier. Both addresses are multiples of 16. The portable bodies copy at once.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

#ifdef __CUDACC__

__device__ __forceinline__ void async_copy(void* shared, const void* global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(global)
      : "memory");
}
__device__ __forceinline__ void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void wait_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

#else

inline void async_copy(void* shared, const void* global) { memcpy(shared, global, 16); }
inline void end_copy_group() {}
template <int Pending>
void wait_copy_groups() {}

#endif

}  // namespace LANE_NAMESPACE
