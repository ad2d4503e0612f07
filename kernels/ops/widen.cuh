// Vectors as the device holds them: float32, widened while loading.
#pragma once
#include "base/device.cuh"
#include "base/namespace.h"

namespace LANE_NAMESPACE {

__global__ void widen_f16(float* out, const __half* x, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = __half2float(x[i]);
}

__global__ void widen_bf16(float* out, const __nv_bfloat16* x, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = __bfloat162float(x[i]);
}

}  // namespace LANE_NAMESPACE
