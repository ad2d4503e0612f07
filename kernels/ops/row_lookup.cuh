// Rows of a weight matrix, dequantized: a token's embedding.
#pragma once
#include "base/launch.cuh"
#include "base/warp.cuh"
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

constexpr int kLookupThreads = 128;

/// out[i][c] = w[ids[i]][c] for i below `count`; the ids are rows of w. A thread decodes a group of 32 columns.
/// Launch: kLookupThreads threads; grid (ceil(columns / 32 / kLookupThreads), count).
template <class Q>
__global__ void __launch_bounds__(kLookupThreads)
    row_lookup(float* out, const uint8_t* w, const int* ids, int count, int columns) {
  follow_producer();
  const int group = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), left = columns - group * kGroup;
  const int64_t i = blockIdx.y;
  if (i >= count || left <= 0) return;
  float values[kGroup];
  decode_group<Q>(w + ids[i] * row_bytes<Q>(columns), group, left, values);
  float* to = out + i * columns + group * kGroup;
  LANE_UNROLL
  for (int c = 0; c < kGroup; c++) {
    if (c < left) to[c] = values[c];
  }
}

}  // namespace LANE_NAMESPACE
