// The greatest of a row's logits: the next token of a greedy choice. Two launches: parts of the row (or the product
// that computes the row finds them), then the parts.
#pragma once
#include "base/launch.cuh"
#include "ops/block.cuh"
#include "ops/shown.cuh"

namespace LANE_NAMESPACE {

/// Below every number, whatever its index. A NaN compares with nothing, so it never takes this one's place.
__device__ inline Best nothing_yet() { return Best{-INFINITY, 0x7fffffff}; }

/// `best`, or x[index] where that is greater, or as great and of a lower index.
__device__ inline Best better_of(Best best, const float* x, int index) {
  const float value = x[index];
  return value > best.value || (value == best.value && index < best.index) ? Best{value, index} : best;
}

/// The best of all threads, in every thread. The scratch arrays are shared memory of kMostWarps elements.
__device__ inline Best block_best(Best best, float* values, int* indices) {
  const int warps = blockDim.x / kWarpLanes;
  best = warp_best(best);
  if (lane_index() == 0) {
    values[warp_index()] = best.value;
    indices[warp_index()] = best.index;
  }
  __syncthreads();
  for (int w = 0; w < warps; w++) best = better(best, Best{values[w], indices[w]});
  return best;
}

/// values[row][part], indices[row][part] = the best of the part's share of the row. Grid: (parts, rows). Shares are
/// interleaved by block.
__global__ void greatest_parts(float* values, int* indices, const float* x, int columns) {
  follow_producer();
  __shared__ float scratch_values[kMostWarps];
  __shared__ int scratch_indices[kMostWarps];
  const float* row = x + int64_t(blockIdx.y) * columns;
  Best best = nothing_yet();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < columns; i += gridDim.x * blockDim.x)
    best = better_of(best, row, i);
  best = block_best(best, scratch_values, scratch_indices);
  if (threadIdx.x != 0) return;
  values[int64_t(blockIdx.y) * gridDim.x + blockIdx.x] = best.value;
  indices[int64_t(blockIdx.y) * gridDim.x + blockIdx.x] = best.index;
}

/// next[row] = the zero-based index of the row's greatest value, the lowest on ties; 0 where no value is a number.
/// Grid: a block a row. Where `tokens` is not null the step ends here, and the row's sequence moves on: tokens[row] =
/// next[row], pos[row] += rows_per_sequence, and the host is shown the choice (ops/shown.cuh).
__global__ void greatest(int* next, const float* values, const int* indices, int parts, int* tokens, int* pos,
                         int rows_per_sequence, int* turns, int* shown) {
  follow_producer();
  __shared__ float scratch_values[kMostWarps];
  __shared__ int scratch_indices[kMostWarps];
  Best best = nothing_yet();
  for (int i = threadIdx.x; i < parts; i += blockDim.x) {
    const int64_t at = int64_t(blockIdx.x) * parts + i;
    best = better(best, Best{values[at], indices[at]});
  }
  best = block_best(best, scratch_values, scratch_indices);
  if (threadIdx.x != 0) return;
  const int chosen = best.index == nothing_yet().index ? 0 : best.index;
  next[blockIdx.x] = chosen;
  if (!tokens) return;
  tokens[blockIdx.x] = chosen;
  pos[blockIdx.x] += rows_per_sequence;
  show(chosen, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), turns, shown);
}

}  // namespace LANE_NAMESPACE
