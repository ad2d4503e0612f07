// The only way to launch a kernel. cudaLaunchKernelEx, unlike <<<>>>, can be read by a C++ compiler and allows
// dependent launches.
//
// note [dependent launches]
// A kernel of a step may start before the one ahead of it in its stream has ended, where the chip allows that. So every
// kernel calls await_producer(), in every thread: before it, nothing is read that a launch of the same step writes, and
// nothing is written. Then a launch ends only after all launches before it, and waiting for the one just ahead is
// waiting for them all. What no step writes, such as weights, may be read earlier.
#pragma once
#include "base/check.cuh"

namespace LANE_NAMESPACE {

/// Keeps an argument out of deduction: the kernel alone gives the parameter types, and arguments convert as in a call.
template <class T>
struct Parameter {
  using type = T;
};

template <class... Parameters>
[[nodiscard]] cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes,
                                 void (*kernel)(Parameters...), typename Parameter<Parameters>::type... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// The same, but the kernel may start before the one before it in the stream has ended: it must call await_producer()
/// before it reads what that one wrote.
template <class... Parameters>
[[nodiscard]] cudaError_t launch_dependent(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes,
                                           void (*kernel)(Parameters...),
                                           typename Parameter<Parameters>::type... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Waits until everything that the launches before this one wrote can be read. Nothing to wait for where launches do
/// not overlap.
__device__ __forceinline__ void await_producer() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
/// Makes a value here. What only reads memory that no launch writes, or computes, compilers otherwise put off until it
/// is used: behind await_producer(), where everybody waits for it and nothing else is left to do.
template <class T>
__device__ __forceinline__ void make_here(T& value) {
#ifdef __CUDACC__
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a register or two");
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value)::"memory");
  else
    asm volatile("" : "+r"(value)::"memory");
#else
  (void)value;
#endif
}
/// Four floats that no launch writes, read here.
__device__ __forceinline__ float4 read_here(const float4* from) {
#ifdef __CUDACC__
  float4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
#else
  return *from;
#endif
}
/// The launch after this one may start.
__device__ __forceinline__ void admit_consumer() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// The first statement of a kernel that has nothing to do ahead of its producer: it may be launched dependently, and so
/// may the one after it.
__device__ __forceinline__ void follow_producer() {
  admit_consumer();
  await_producer();
}

}  // namespace LANE_NAMESPACE
