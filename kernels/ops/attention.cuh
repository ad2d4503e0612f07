// Attention of one query head of one token over the rows of a sequence's cache.
#pragma once
#include "base/launch.cuh"
#include "ops/block.cuh"
#include "ops/cache.cuh"

namespace LANE_NAMESPACE {

constexpr int kAttentionTile = 128;  // cache rows whose scores are held at once

/// Bytes of dynamic shared memory that `attention` takes: the query, the values' running sum, a tile's scores.
constexpr int attention_shared_bytes(int width, int value_width) {
  return (width + value_width + kAttentionTile) * int(sizeof(float));
}

/// q·k over `width` values, in four interleaved sums: shorter chains of additions, in an order that is always the same.
template <class Cache>
__device__ float attention_score(const float* query, const uint8_t* row, int first, int width) {
  float sums[4] = {0, 0, 0, 0};
  int e = 0;
  for (; e + 4 <= width; e += 4)
    for (int j = 0; j < 4; j++) sums[j] = fmaf(query[e + j], Cache::load(row, first + e + j), sums[j]);
  for (; e < width; e++) sums[0] = fmaf(query[e], Cache::load(row, first + e), sums[0]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// out[t][h] = sum over rows p of softmax(score)[p] * values[p]; score = q·keys[p] * scale, soft-capped at `limit`
/// where that is not 0, over rows 0 … position, or the last `window` of them where that is not 0. `sinks` (null: none)
/// adds a score a head that takes its share and gives no value. Heads share keys and values in `groups`: head h reads
/// group h / (heads / groups). Grid: (heads, tokens); a block of any whole warps. Scores are held a tile at a time with
/// a running maximum, so shared memory does not grow with the context.
template <class Cache>
__global__ void attention(float* out, const float* q, const uint8_t* keys, const uint8_t* values, const float* sinks,
                          const int* pos, const int* slots, int64_t state_stride, int rows_per_sequence, int heads,
                          int groups, int width, int value_width, float scale, int window, float limit) {
  follow_producer();
  LANE_DYNAMIC_SHARED(float, shared);
  __shared__ float scratch[kMostWarps];
  __shared__ double scratch_sum[kMostWarps];
  float* query = shared;
  float* sum = query + width;
  float* scores = sum + value_width;

  const int head = blockIdx.x, token = blockIdx.y, group = head / (heads / groups);
  const int position = position_of(token, pos, rows_per_sequence);
  const int first = window > 0 && position >= window ? position - window + 1 : 0;
  const int64_t slot = slots[token / rows_per_sequence] * state_stride;
  const int64_t key_row = int64_t(groups) * width / Cache::kElements * Cache::kBytes;
  const int64_t value_row = int64_t(groups) * value_width / Cache::kElements * Cache::kBytes;

  for (int e = threadIdx.x; e < width; e += blockDim.x) query[e] = q[(int64_t(token) * heads + head) * width + e];
  for (int e = threadIdx.x; e < value_width; e += blockDim.x) sum[e] = 0.0f;
  float most = sinks ? sinks[head] : -INFINITY;
  double denominator = sinks ? 1.0 : 0.0;
  __syncthreads();

  for (int start = first; start <= position; start += kAttentionTile) {
    const int rows = min(kAttentionTile, position + 1 - start);
    float tile_most = -INFINITY;
    for (int p = threadIdx.x; p < rows; p += blockDim.x) {
      float score = scale * attention_score<Cache>(query, keys + slot + (start + p) * key_row, group * width, width);
      if (limit > 0.0f) score = limit * tanhf(score / limit);
      scores[p] = score;
      tile_most = fmaxf(tile_most, score);
    }
    const float before = most;
    tile_most = block_max(tile_most, scratch);
    most = fmaxf(most, tile_most);
    double tile_sum = 0;
    for (int p = threadIdx.x; p < rows; p += blockDim.x) {
      scores[p] = expf(scores[p] - most);
      tile_sum += double(scores[p]);
    }
    tile_sum = block_sum(tile_sum, scratch_sum);
    const float shrink = expf(before - most);  // 0 for the first tile, where `before` is minus infinity
    denominator = denominator * double(shrink) + tile_sum;
    __syncthreads();
    for (int e = threadIdx.x; e < value_width; e += blockDim.x) {
      float total = sum[e] * shrink;
      for (int p = 0; p < rows; p++)
        total = fmaf(scores[p], Cache::load(values + slot + (start + p) * value_row, group * value_width + e), total);
      sum[e] = total;
    }
    __syncthreads();
  }
  const float inverse = float(1.0 / denominator);
  for (int e = threadIdx.x; e < value_width; e += blockDim.x)
    out[(int64_t(token) * heads + head) * value_width + e] = sum[e] * inverse;
}

}  // namespace LANE_NAMESPACE
