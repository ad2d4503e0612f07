// Ops that only move values: a thread each.
#pragma once
#include "base/device.cuh"
#include "base/launch.cuh"
#include "base/namespace.h"

namespace LANE_NAMESPACE {

/// Of each run of `width` values of x, those from `first` (zero-based) on, `kept` of them. `count` is that of `out`.
__global__ void head_slice(float* out, const float* x, int count, int width, int first, int kept) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = x[int64_t(i / kept) * width + first + i % kept];
}

/// Runs of x_width and y_width values, one after the other: out = x run 0, y run 0, x run 1, y run 1, … A y of one run
/// a token is repeated for each of the token's `heads` runs of x where y_repeats is 1. `count` is that of `out`.
__global__ void head_join(float* out, const float* x, const float* y, int count, int x_width, int y_width, int heads,
                          int y_repeats) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int width = x_width + y_width, run = i / width, within = i % width;
  const int y_run = y_repeats ? run / heads : run;
  out[i] = within < x_width ? x[int64_t(run) * x_width + within] : y[int64_t(y_run) * y_width + within - x_width];
}

/// out[i] = x[i]: rows that no view reaches.
__global__ void copy_rows(float* out, const float* x, int count) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = x[i];
}

}  // namespace LANE_NAMESPACE
