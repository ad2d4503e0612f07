// Values that blocks of one launch hand to other blocks of it.
//
// note [published values]
// Values are their own flags: one is there when it is not +0, and a zero is published as -0. Who reads them waits for
// nothing else, neither for a counter nor for other blocks' values. Before the launch the array is all +0: a launch of
// the same stream that runs after all readers of an earlier use, and before this one, writes that.
//
// A block only waits for blocks of lower indices, which never wait. Blocks start in the order of their indices, so
// those are running or have ended, whatever the number of multiprocessors: the assumption of single-pass scans (CUB's),
// too. The host chip hands its blocks out in that order.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

__device__ __forceinline__ void publish(float* to, float v) {
  const float there = v == 0.f ? -0.f : v;
#ifdef __CUDACC__
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(there) : "memory");
#else
  host_chip::publish(to, there);
#endif
}

/// A value, maybe not there yet; and four, some of them maybe not.
__device__ __forceinline__ float read_published(const float* from) {
#ifdef __CUDACC__
  float v;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(from) : "memory");
  return v;
#else
  return host_chip::read_published(from);
#endif
}
__device__ __forceinline__ float4 read_published(const float4* from) {
#ifdef __CUDACC__
  float4 v;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
#else
  return host_chip::read_published(from);
#endif
}

__device__ __forceinline__ bool all_there(float v) { return __float_as_uint(v) != 0; }
__device__ __forceinline__ bool all_there(float4 v) {
  return all_there(v.x) && all_there(v.y) && all_there(v.z) && all_there(v.w);
}
/// What lies at `from`, once it is there; `v` is what was read last. Between two reads: `pause`.
template <class Values, class Pause>
__device__ __forceinline__ Values await_published(const Values* from, Values v, Pause pause) {
  for ([[maybe_unused]] unsigned tries = 0; !all_there(v); tries++) {
#ifndef __CUDACC__
    host_chip::await_other_block(tries);
#endif
    pause();
    v = read_published(from);
  }
  return v;
}
/// For a warp's first wait: a fraction of what a read takes, in ns.
__device__ __forceinline__ void pause_a_while() {
#ifdef __CUDACC__
  __nanosleep(20);
#endif
}

}  // namespace LANE_NAMESPACE
