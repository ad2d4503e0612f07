// Carried state that is not a cache: the ring of a short convolution and the memory of a delta rule. Both are float32,
// at state + slots[sequence] * state_stride bytes.
#pragma once
#include "base/launch.cuh"
#include "ops/block.cuh"

namespace LANE_NAMESPACE {

/// Row `row` (from -held to -1: the ring's, oldest first; from 0: the block's own) of a channel.
__device__ inline float ring_value(const float* ring, const float* x, int row, int held, int channels, int channel) {
  return row < 0 ? ring[int64_t(row + held) * channels + channel] : x[int64_t(row) * channels + channel];
}

/// The sum over the taps of w[c][i] * row `row` - taps + 1 + i of channel c. The ring holds taps - 1 rows.
__device__ inline float convolved(const float* ring, const float* x, const float* w, int row, int taps, int channels,
                                  int channel) {
  float sum = 0;
  for (int tap = 0; tap < taps; tap++)
    sum = fmaf(w[int64_t(channel) * taps + tap], ring_value(ring, x, row - taps + 1 + tap, taps - 1, channels, channel),
               sum);
  return sum;
}

/// A channel of a ring of `held` rows forgets the oldest ones and takes the block's last ones.
__device__ inline void shift_channel(float* ring, const float* x, int held, int rows, int channels, int channel) {
  // Row r takes what stood `rows` later, which no earlier r has written.
  for (int r = 0; r < held; r++)
    ring[int64_t(r) * channels + channel] = ring_value(ring, x, r - held + rows, held, channels, channel);
}

/// out[t][c] = the convolution at token t. Grid: a thread a value; `count` is tokens * channels.
__global__ void short_convolution(float* out, const uint8_t* state, const float* x, const float* w, const int* slots,
                                  int64_t state_stride, int count, int channels, int taps, int rows_per_sequence) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int token = i / channels, channel = i % channels, sequence = token / rows_per_sequence;
  const float* ring = reinterpret_cast<const float*>(state + slots[sequence] * state_stride);
  const float* block = x + int64_t(sequence) * rows_per_sequence * channels;
  out[i] = convolved(ring, block, w, token % rows_per_sequence, taps, channels, channel);
}

/// Every sequence's ring moves on by the block's rows. Grid: a thread a channel of a sequence; `count` is sequences *
/// channels; `held` the ring's rows.
__global__ void shift(uint8_t* state, const float* x, const int* slots, int64_t state_stride, int count, int channels,
                      int held, int rows_per_sequence) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int sequence = i / channels, channel = i % channels;
  float* ring = reinterpret_cast<float*>(state + slots[sequence] * state_stride);
  shift_channel(ring, x + int64_t(sequence) * rows_per_sequence * channels, held, rows_per_sequence, channels, channel);
}

constexpr int kMostDeltaWidth = 256;
constexpr int kDeltaPerLane = kMostDeltaWidth / kWarpLanes;

/// For each row of a sequence in order: M <- d M; M <- M + b (v - M k) k^T; and where `out` is not null, out = M q.
/// M is [width values][width keys] a head; a warp keeps one row of it, for value v[h][j], in registers. Where `keep` is
/// 1 the last state is written back. Head h reads key head h / (heads / groups), or h % groups where `tiled`. v and out
/// are [token][heads][width], q and k [token][groups][width], d and b [token][heads]. Grid: (heads * width / warps,
/// sequences).
__global__ void delta_rule(float* out, uint8_t* state, const float* q, const float* k, const float* v, const float* d,
                           const float* b, const int* slots, int64_t state_stride, int rows_per_sequence, int heads,
                           int groups, int width, int tiled, int keep) {
  follow_producer();
  const int lane = lane_index();
  const int value = blockIdx.x * (blockDim.x / kWarpLanes) + warp_index();  // h * width + j
  if (value >= heads * width) return;
  const int head = value / width, group = tiled ? head % groups : head / (heads / groups);
  const int sequence = blockIdx.y;
  float* memory = reinterpret_cast<float*>(state + slots[sequence] * state_stride) + int64_t(value) * width;
  float row[kDeltaPerLane];
  for (int c = 0; c < kDeltaPerLane; c++) row[c] = lane + c * kWarpLanes < width ? memory[lane + c * kWarpLanes] : 0.0f;

  for (int r = 0; r < rows_per_sequence; r++) {
    const int64_t token = int64_t(sequence) * rows_per_sequence + r;
    const float* key = k + (token * groups + group) * width;
    const float kept = d[token * heads + head];
    float along = 0;
    for (int c = 0; c < kDeltaPerLane; c++) {
      if (lane + c * kWarpLanes >= width) continue;
      row[c] *= kept;
      along = fmaf(row[c], key[lane + c * kWarpLanes], along);
    }
    along = warp_sum(along);
    const float change = b[token * heads + head] * (v[token * heads * width + value] - along);
    float read = 0;
    for (int c = 0; c < kDeltaPerLane; c++) {
      if (lane + c * kWarpLanes >= width) continue;
      row[c] = fmaf(change, key[lane + c * kWarpLanes], row[c]);
      if (out) read = fmaf(row[c], q[(token * groups + group) * width + lane + c * kWarpLanes], read);
    }
    if (!out) continue;
    read = warp_sum(read);
    if (lane == 0) out[token * heads * width + value] = read;
  }
  if (keep)
    for (int c = 0; c < kDeltaPerLane; c++)
      if (lane + c * kWarpLanes < width) memory[lane + c * kWarpLanes] = row[c];
}

}  // namespace LANE_NAMESPACE
