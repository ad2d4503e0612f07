// Norms. A block normalises one run of `width` values: a row, or a head of it. Sums are double.
#pragma once
#include "base/launch.cuh"
#include "ops/row_norm.cuh"

namespace LANE_NAMESPACE {

/// out = x / sqrt(mean(x^2) + epsilon) * weight + bias, for runs of `width` values, and + residual; grid: a block a
/// run. `weight` and `bias` have `weight_columns` values, those of one run or of a whole row of runs; `residual` is as
/// x. Any of the three may be null.
__global__ void rms_norm(float* out, const float* x, const float* weight, const float* bias, const float* residual,
                         int width, int weight_columns, float epsilon) {
  follow_producer();
  __shared__ double scratch[kMostWarps];
  const int64_t start = int64_t(blockIdx.x) * width, first = start % weight_columns;
  const float inverse = rms_factor(x + start, width, epsilon, scratch);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    float value = x[start + i] * inverse * (weight ? weight[first + i] : 1.0f) + (bias ? bias[first + i] : 0.0f);
    if (residual) value += residual[start + i];
    out[start + i] = value;
  }
}

/// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias; as rms_norm otherwise. The variance is that of
/// the centred values: no cancellation where the mean is large.
__global__ void layer_norm(float* out, const float* x, const float* weight, const float* bias, int width,
                           int weight_columns, float epsilon) {
  follow_producer();
  __shared__ double scratch[kMostWarps];
  const int64_t start = int64_t(blockIdx.x) * width, first = start % weight_columns;
  double sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) sum += double(x[start + i]);
  const double mean = block_sum(sum, scratch) / width;
  double squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const double centred = double(x[start + i]) - mean;
    squares += centred * centred;
  }
  squares = block_sum(squares, scratch);
  const float inverse = float(1.0 / sqrt(squares / width + double(epsilon)));
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out[start + i] = float(double(x[start + i]) - mean) * inverse * (weight ? weight[first + i] : 1.0f) +
                     (bias ? bias[first + i] : 0.0f);
}

/// out = x / sqrt(sum(x^2) + epsilon), for runs of `width` values; grid: a block a run.
__global__ void length_norm(float* out, const float* x, int width, float epsilon) {
  follow_producer();
  __shared__ double scratch[kMostWarps];
  const int64_t start = int64_t(blockIdx.x) * width;
  double squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += double(x[start + i]) * double(x[start + i]);
  squares = block_sum(squares, scratch);
  const float inverse = float(1.0 / sqrt(squares + double(epsilon)));
  for (int i = threadIdx.x; i < width; i += blockDim.x) out[start + i] = x[start + i] * inverse;
}

}  // namespace LANE_NAMESPACE
