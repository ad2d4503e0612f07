// Norms. A block normalises one run of `width` values: a row, or a head of it. What needs a mean sums in double.
#pragma once
#include "base/launch.cuh"
#include "ops/row_norm.cuh"

namespace LANE_NAMESPACE {

/// Values of a row that a thread keeps in registers; it reads those of longer rows twice.
constexpr int kNormHeld = 4;

/// out = x / sqrt(mean(x^2) + epsilon) * weight + bias, for runs of `width` values, and + residual; grid: a block a
/// run. `weight` and `bias` have `weight_columns` values, those of one run or of a whole row of runs; `residual` is as
/// x. Any of the three may be null. One block's launch is all latency: everything it reads is on its way at once, the
/// weights before the producer has ended.
__global__ void rms_norm(float* out, const float* x, const float* weight, const float* bias, const float* residual,
                         int width, int weight_columns, float epsilon) {
  admit_consumer();
  __shared__ float scratch[kMostWarps];
  const int64_t start = int64_t(blockIdx.x) * width, first = start % weight_columns;
  const auto weight_at = [&](int i) { return weight ? __ldg(weight + first + i) : 1.0f; };
  const auto bias_at = [&](int i) { return bias ? __ldg(bias + first + i) : 0.0f; };
  const auto residual_at = [&](int i) { return residual ? __ldcg(residual + start + i) : 0.0f; };
  float held[kNormHeld], factors[kNormHeld], added[kNormHeld];
  LANE_UNROLL
  for (int k = 0; k < kNormHeld; k++) {
    const int i = threadIdx.x + k * blockDim.x;
    factors[k] = i < width ? weight_at(i) : 0.0f, added[k] = i < width ? bias_at(i) : 0.0f;
  }
  await_producer();
  float squares = 0, carried[kNormHeld];
  LANE_UNROLL
  for (int k = 0; k < kNormHeld; k++) {
    const int i = threadIdx.x + k * blockDim.x;
    held[k] = i < width ? __ldcg(x + start + i) : 0.0f, carried[k] = i < width ? residual_at(i) : 0.0f;
  }
  LANE_UNROLL
  for (int k = 0; k < kNormHeld; k++) squares = fmaf(held[k], held[k], squares);
  const int beyond = threadIdx.x + kNormHeld * blockDim.x;
  for (int i = beyond; i < width; i += blockDim.x) squares = fmaf(x[start + i], x[start + i], squares);
  const float inverse = rms_factor_of(squares, width, epsilon, scratch);
  LANE_UNROLL
  for (int k = 0; k < kNormHeld; k++) {
    const int i = threadIdx.x + k * blockDim.x;
    if (i < width) out[start + i] = normed_value(held[k], inverse, factors[k], added[k], carried[k]);
  }
  for (int i = beyond; i < width; i += blockDim.x)
    out[start + i] = normed_value(x[start + i], inverse, weight_at(i), bias_at(i), residual_at(i));
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
