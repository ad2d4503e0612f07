// Bulk copies from global into shared memory, and the mbarriers that count their bytes (capability 9.0 and up). One
// thread asks for a copy and goes on; whoever needs the bytes waits on the barrier's phase. A barrier that has finished
// an even number of phases has parity 0: the first use of a slot waits for parity 0, the second for 1, and so on.
//
// Source, destination and size are multiples of 16 bytes. The portable bodies copy at once, so that every wait
// succeeds.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

struct alignas(8) CopyBarrier {
  unsigned long long state;
};

#ifdef __CUDACC__

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// One thread makes the barrier, of phases that end with so many arrivals; copies of that thread may follow at once.
/// Others need a block-wide or warp-wide barrier behind it before they wait.
__device__ __forceinline__ void init_copy_barrier(CopyBarrier* barrier, int arrivals = 1) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// One arrival that brings nothing, but what its thread stored before is seen behind the barrier. The portable body
/// waits for nobody.
__device__ __forceinline__ void arrive_at(CopyBarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// After the last init_copy_barrier and before the first copy: the copy engine sees the barriers.
__device__ __forceinline__ void publish_copy_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Tells the barrier how many bytes its phase is to wait for: one thread, before the copies that bring them.
__device__ __forceinline__ void expect_copies(CopyBarrier* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bulk_copy(void* shared, const void* global, uint32_t bytes, CopyBarrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
/// By a whole warp with the same arguments, as its first lane's copy: so addresses are made once a warp, not by a lane.
__device__ __forceinline__ void bulk_copy_of_warp(void* shared, const void* global, uint32_t bytes,
                                                  CopyBarrier* barrier) {
  asm volatile(
      "{\n.reg .pred first;\nsetp.eq.u32 first, %4, 0;\n"
      "@first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n}" ::"r"(
          shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "r"(threadIdx.x & 31u)
      : "memory");
}
/// The phase's only copy, of bytes that are read once a step, such as weights: they should push nothing else out of the
/// L2.
__device__ __forceinline__ void bulk_copy_once(void* shared, const void* global, uint32_t bytes, CopyBarrier* barrier) {
  uint64_t evict_first;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(evict_first));
  expect_copies(barrier, bytes);
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "l"(evict_first)
      : "memory");
}

/// Has bytes on their way to the L2, for loads to come.
__device__ __forceinline__ void bulk_prefetch(const void* global, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void wait_copy(CopyBarrier* barrier, uint32_t parity) {
  const uint32_t at = shared_address(barrier);
  uint32_t done;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(at), "r"(parity)
                 : "memory");
  } while (!done);
}

/// By the whole warp, behind a lane's copy into a slot that the others wait for: nothing here, where waiting does it
/// all.
__device__ __forceinline__ void await_copying_lane() {}

#else

inline void await_copying_lane() { __syncwarp(); }
inline void init_copy_barrier(CopyBarrier*, int = 1) {}
inline void arrive_at(CopyBarrier*) {}
inline void publish_copy_barriers() {}
inline void expect_copies(CopyBarrier*, uint32_t) {}
inline void bulk_copy(void* shared, const void* global, uint32_t bytes, CopyBarrier*) { memcpy(shared, global, bytes); }
inline void bulk_copy_of_warp(void* shared, const void* global, uint32_t bytes, CopyBarrier*) {
  if ((threadIdx.x & 31u) == 0) memcpy(shared, global, bytes);
}
inline void bulk_copy_once(void* shared, const void* global, uint32_t bytes, CopyBarrier*) {
  memcpy(shared, global, bytes);
}
inline void bulk_prefetch(const void*, uint32_t) {}
inline void wait_copy(CopyBarrier*, uint32_t) {}

#endif

}  // namespace LANE_NAMESPACE
