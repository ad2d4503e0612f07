// A short convolution with what follows it: its activation, and the ring's shift.
#pragma once
#include "base/launch.cuh"
#include "ops/elementwise.cuh"
#include "ops/recurrent.cuh"

namespace LANE_NAMESPACE {

struct Identity {
  static __device__ float apply(float x, float) { return x; }
};

/// out[t][c] = F(the convolution's value), for all rows of the block; then the ring forgets its oldest rows and takes
/// the block's last ones. As short_convolution, map and shift compute it. Grid.x: a thread a channel of a sequence;
/// grid.y: `run` rows each, at least taps - 1, so that the first run alone reads the ring, and may change it.
template <class F>
__global__ void convolve(float* out, uint8_t* state, const float* x, const float* w, const int* slots,
                         int64_t state_stride, int count, int channels, int taps, int rows_per_sequence, int run) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int sequence = i / channels, channel = i % channels;
  float* ring = reinterpret_cast<float*>(state + slots[sequence] * state_stride);
  const int64_t first = int64_t(sequence) * rows_per_sequence * channels;
  const int begin = static_cast<int>(blockIdx.y) * run, end = min(begin + run, rows_per_sequence);
  for (int row = begin; row < end; row++) {
    const float sum = convolved(ring, x + first, w, row, taps, channels, channel);
    out[first + int64_t(row) * channels + channel] = F::apply(sum, 0.0f);
  }
  if (begin == 0) shift_channel(ring, x + first, taps - 1, rows_per_sequence, channels, channel);
}

}  // namespace LANE_NAMESPACE
