// Ops that depend on a token's position. Token t is row t % rows_per_sequence of sequence t / rows_per_sequence, and
// stands at pos[sequence] + row.
#pragma once
#include "base/device.cuh"
#include "base/launch.cuh"
#include "base/namespace.h"

namespace LANE_NAMESPACE {

__device__ inline int position_of(int token, const int* pos, int rows_per_sequence) {
  return pos[token / rows_per_sequence] + token % rows_per_sequence;
}

/// The table that `rotation` reads: (cos, sin) of position * frequency for each of `pairs` frequencies, times
/// `magnitude`; angles in double, because a float's angle is off by 1e-3 at position 10,000. `count` is ctx * pairs.
__global__ void rotary_table(float* table, const double* frequencies, int count, int pairs, double magnitude) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double angle = double(i / pairs) * frequencies[i % pairs];
  table[2 * int64_t(i)] = float(cos(angle) * magnitude);
  table[2 * int64_t(i) + 1] = float(sin(angle) * magnitude);
}

/// Value `within` of a head after its first `turned` values are turned; the others pass. Pair i is (2i, 2i + 1) where
/// `neighbours` is 1, else (i, i + turned / 2). `angles` is the position's row of the table: (cos, sin) a pair.
__device__ inline float rotated_value(const float* head, const float* angles, int within, int turned, int neighbours) {
  const int half = turned / 2;
  if (within >= turned) return head[within];
  const int pair = neighbours ? within / 2 : within % half;
  const bool second = neighbours ? within % 2 == 1 : within >= half;
  const int distance = neighbours ? 1 : half;
  const float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
  return second ? head[within] * cosine + head[within - distance] * sine
                : head[within] * cosine - head[within + distance] * sine;
}

/// Turns each head's `width` values; `table` is [ctx][turned / 2] of (cos, sin). Grid: a thread a value; `columns` is
/// heads * width and `count` is tokens * columns.
__global__ void rotation(float* out, const float* x, const float* table, const int* pos, int count, int columns,
                         int rows_per_sequence, int width, int turned, int neighbours) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int within = i % columns % width;
  const float* angles = table + int64_t(position_of(i / columns, pos, rows_per_sequence)) * turned;
  out[i] = rotated_value(x + i - within, angles, within, turned, neighbours);
}

/// out = x * (1 + factor * ln(1 + floor(position / length))): queries that grow with the position.
__global__ void position_scale(float* out, const float* x, const int* pos, int count, int columns,
                               int rows_per_sequence, float factor, int length) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int position = position_of(i / columns, pos, rows_per_sequence);
  out[i] = x[i] * (1.0f + factor * log1pf(float(position / length)));
}

}  // namespace LANE_NAMESPACE
