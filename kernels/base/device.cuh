// The one way to CUDA: nvcc's own headers, or the host chip where a C++ compiler builds.
#pragma once
#include <stdint.h>

#include "base/namespace.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/// The block's dynamic shared memory as T* `name`, 16-byte aligned.
#define LANE_DYNAMIC_SHARED(T, name)                                          \
  extern __shared__ __align__(16) unsigned char lane_dynamic_shared_memory[]; \
  T* const name = reinterpret_cast<T*>(lane_dynamic_shared_memory)
#define LANE_UNROLL _Pragma("unroll")
#else
#include "host/host_chip.h"
#define LANE_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::host_chip::dynamic_shared)
#define LANE_UNROLL  // the C++ compiler decides; it vectorizes loops better than it rolls them up again
#endif

// Kernels use no collective under a condition that differs within a warp: full masks, all 32 lanes, always.
#define LANE_FULL_WARP 0xffffffffu

namespace LANE_NAMESPACE {

/// On the host, stores the array: the C++ compiler would otherwise take it apart into scalars, and the loops that read
/// it would not be vectorized. On a GPU it stays in registers.
template <class T, int COUNT>
__device__ __forceinline__ void keep_whole(T (&array)[COUNT]) {
#if !defined(__CUDACC__)
  asm("" : "+m"(array));
#else
  (void)array;
#endif
}

}  // namespace LANE_NAMESPACE
