// Rings of slots that some warps of a block fill, the producers, while others work on them, the consumers (capability
// 9.0 and up). A slot's barrier `full` ends a phase when what was to come has come, `left` when each consuming warp has
// left it.
//
// In the portable body a step is worked on when it has been filled, and filled when the one before it has been left:
// the whole block meets twice a step. Therefore all threads pass all steps of a RoleRing, whoever they are.
#pragma once
#include "base/bulk_copy.cuh"
#include "base/warpgroup_mma.cuh"

namespace LANE_NAMESPACE {

/// By a whole warp, behind what its lanes did.
__device__ __forceinline__ void arrive_as_warp([[maybe_unused]] CopyBarrier* barrier) {
#if defined(__CUDACC__)
  __syncwarp();
  if ((threadIdx.x & 31) == 0) arrive_at(barrier);
#endif
}

/// Steps that one thread fills by bulk copies.
template <int Slots>
struct RoleRing {
  CopyBarrier *full, *left;

  /// By one thread; the caller publishes the barriers.
  __device__ __forceinline__ void make(int consumers) const {
    for (int i = 0; i < Slots; i++) init_copy_barrier(full + i), init_copy_barrier(left + i, consumers);
  }
  /// By all threads, before their first step: what producers stored before it can be read, portably.
  __device__ __forceinline__ void begin() const {
#if !defined(__CUDACC__)
    __syncthreads(0);
#endif
  }
  /// Before a step's copies; a slot's first step is awaited by nobody.
  __device__ __forceinline__ void await_room(int step) const {
    if (step >= Slots) wait_copy(left + step % Slots, (step / Slots + 1) & 1);
  }
  /// By all threads that consume nothing, behind a step's copies.
  __device__ __forceinline__ void pass() const {
#if !defined(__CUDACC__)
    __syncthreads(0), __syncthreads(0);
#endif
  }
  __device__ __forceinline__ void await_step([[maybe_unused]] int step) const {
#if defined(__CUDACC__)
    wait_copy(full + step % Slots, (step / Slots) & 1);
#else
    __syncthreads(0);
#endif
  }
  /// Behind a warp's last read of a step, this one or an earlier one.
  __device__ __forceinline__ void leave([[maybe_unused]] int step) const {
#if defined(__CUDACC__)
    arrive_as_warp(left + step % Slots);
#endif
  }
  /// Behind all that consumers do with a step.
  __device__ __forceinline__ void end_step() const {
#if !defined(__CUDACC__)
    __syncthreads(0);
#endif
  }
};

/// Windows that several threads fill by asynchronous copies of their own and by stores. The portable body waits for
/// nothing: there, who fills a window does so while a RoleRing's consumers wait for a step before the first that reads
/// it, and after the last that read what lay there.
template <int Slots>
struct WindowRing {
  CopyBarrier *full, *left;

  __device__ __forceinline__ void make(int producer_threads, int consumers) const {
    for (int i = 0; i < Slots; i++)
      init_copy_barrier(full + i, 2 * producer_threads), init_copy_barrier(left + i, consumers);
  }
  __device__ __forceinline__ void await_room(int window) const {
    if (window >= Slots) wait_copy(left + window % Slots, (window / Slots + 1) & 1);
  }
  /// By each producing thread, behind its copies and stores; does not wait for them.
  __device__ __forceinline__ void publish([[maybe_unused]] int window) const {
#if defined(__CUDACC__)
    CopyBarrier* barrier = full + window % Slots;
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
    arrive_at(barrier);
#endif
  }
  __device__ __forceinline__ void await_window(int window) const {
    wait_copy(full + window % Slots, (window / Slots) & 1);
  }
  __device__ __forceinline__ void leave(int window) const { arrive_as_warp(left + window % Slots); }
};

/// By four warps, of a kernel whose launch bounds say its threads: from now on they have so many registers.
template <int Registers>
__device__ __forceinline__ void take_registers() {
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
#endif
}
template <int Registers>
__device__ __forceinline__ void give_registers() {
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
#endif
}

}  // namespace LANE_NAMESPACE
