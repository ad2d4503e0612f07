// Blocks of one launch that hand each other values half-way: what all of them compute before, all of them may read
// after.
//
// note [meeting]
// A launch whose blocks wait for each other must have them all resident at once: its grid fits the chip (the program
// looks before it loads: Kernel::meets), and the launch behind it starts only when all of this one's blocks have. The
// host chip runs blocks one after the other, so there the whole grid runs twice: up to the meeting, and from it on.
// What a block holds in shared memory or registers is lost in between, so a kernel computes it on the side that uses
// it.
//
//   if (ahead_of_meeting()) { … publish(values + row, v); … }
//   if (!meet()) return;
//   … read_published(values + row) …
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// Whether this run of the block does what comes before the meeting; meet(): whether it does what comes after. Both,
/// but on the host chip.
#ifdef __CUDACC__
__device__ __forceinline__ bool ahead_of_meeting() { return true; }
__device__ __forceinline__ bool meet() { return true; }
#else
inline bool ahead_of_meeting() { return host_chip::ahead_of_meeting(); }
inline bool meet() { return host_chip::meet(); }
#endif

// Published values are their own flags: a value is there when it is not +0, and a zero is published as -0. Who reads
// them waits for nothing else, neither for a counter nor for other blocks' values. Before the launch the array is all
// +0: a launch of the same stream that runs after all readers, and before this one, writes that.

__device__ __forceinline__ void publish(float* to, float v) {
#ifdef __CUDACC__
  const float there = v == 0.f ? -0.f : v;
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(there) : "memory");
#else
  *to = v == 0.f ? -0.f : v;
#endif
}

/// Four values, some of them maybe not there yet.
__device__ __forceinline__ float4 read_published(const float4* from) {
#ifdef __CUDACC__
  float4 v;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
#else
  return *from;
#endif
}

__device__ __forceinline__ bool all_there(float4 v) {
  const auto there = [](float x) { return __float_as_uint(x) != 0; };
  return there(v.x) && there(v.y) && there(v.z) && there(v.w);
}
/// What lies at `from`, once it is there; `v` is what was read last.
__device__ __forceinline__ float4 await_published(const float4* from, float4 v) {
  while (!all_there(v)) {
#ifndef __CUDACC__
    host_chip::fail("a value that no block published ahead of the meeting");
#endif
    v = read_published(from);
  }
  return v;
}

}  // namespace LANE_NAMESPACE
