// What stands between the projections and the attention, in one launch: q/k norm by head, rotary, the cache writes.
#pragma once
#include "base/launch.cuh"
#include "ops/cache.cuh"
#include "ops/row_norm.cuh"

namespace LANE_NAMESPACE {

/// Warps of a block, at most, each with a token of its own.
constexpr int kAttentionInputsWarps = 4;

/// A warp norms and turns a head of `width` values: x, times norm and its factor where norm is not null, then turned by
/// `angles` where that is not null. The result lies in the second half of `shared`.
__device__ inline const float* prepare_head(float* shared, const float* x, const float* norm, const float* angles,
                                            int width, int turned, int neighbours, float epsilon) {
  float *head = shared, *result = shared + width;
  float squares = 0;
  for (int i = lane_index(); norm && i < width; i += kWarpLanes) squares = fmaf(x[i], x[i], squares);
  const float factor = norm ? rms_factor_of_sum(warp_sum(squares), width, epsilon) : 1.0f;
  for (int i = lane_index(); i < width; i += kWarpLanes) head[i] = norm ? x[i] * factor * norm[i] + 0.0f : x[i];
  __syncwarp();
  for (int i = lane_index(); i < width; i += kWarpLanes)
    result[i] = angles ? rotated_value(head, angles, i, turned, neighbours) : head[i];
  __syncwarp();
  return result;
}

template <class Cache>
__device__ inline void store_head(uint8_t* row, int head, const float* x, int width) {
  for (int block = lane_index(); block < width / Cache::kElements; block += kWarpLanes)
    Cache::store(row, head * width + block * Cache::kElements, x + block * Cache::kElements);
}

/// For each token: q_out = q normed and turned, a head at a time; the key and value rows at the token's position = k
/// normed and turned, and v. Norms, and the table, may be null. Grid: (heads + 2 groups, tokens / warps of a block);
/// heads is 0 where q is not prepared. Dynamic shared memory: for each warp a head as it comes, and as it leaves.
template <class Cache>
__global__ void __launch_bounds__(kAttentionInputsWarps* kWarpLanes)
    attention_inputs(float* q_out, uint8_t* keys, uint8_t* values, const float* q, const float* k, const float* v,
                     const float* q_norm, const float* k_norm, const float* table, const int* pos, const int* slots,
                     int64_t state_stride, int rows_per_sequence, int heads, int groups, int width, int value_width,
                     int turned, int neighbours, float epsilon) {
  follow_producer();
  LANE_DYNAMIC_SHARED(float, of_block);
  const int item = blockIdx.x, token = blockIdx.y * (blockDim.x / kWarpLanes) + warp_index();
  float* shared = of_block + warp_index() * 2 * (width > value_width ? width : value_width);
  const int64_t position = position_of(token, pos, rows_per_sequence);
  const int64_t slot = slots[token / rows_per_sequence] * state_stride;
  const float* angles = table ? table + position * turned : nullptr;
  if (item < heads) {
    const int64_t at = (int64_t(token) * heads + item) * width;
    const float* head = prepare_head(shared, q + at, q_norm, angles, width, turned, neighbours, epsilon);
    for (int i = lane_index(); i < width; i += kWarpLanes) q_out[at + i] = head[i];
  } else if (item < heads + groups) {
    const int group = item - heads;
    const float* x = k + (int64_t(token) * groups + group) * width;
    const float* head = prepare_head(shared, x, k_norm, angles, width, turned, neighbours, epsilon);
    const int64_t row_bytes = int64_t(groups) * width / Cache::kElements * Cache::kBytes;
    store_head<Cache>(keys + slot + position * row_bytes, group, head, width);
  } else {
    const int group = item - heads - groups;
    const float* x = v + (int64_t(token) * groups + group) * value_width;
    const int64_t row_bytes = int64_t(groups) * value_width / Cache::kElements * Cache::kBytes;
    store_head<Cache>(values + slot + position * row_bytes, group, x, value_width);
  }
}

}  // namespace LANE_NAMESPACE
