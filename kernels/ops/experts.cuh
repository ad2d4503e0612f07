// Routed experts: which ones a token takes, with what share, and the sum of what they give. E experts, `count` chosen.
#pragma once
#include "base/launch.cuh"
#include "ops/block.cuh"
#include "ops/greatest.cuh"

namespace LANE_NAMESPACE {

/// What is made of the router's scores.
enum ShareBy { kSoftmax = 0, kSigmoid = 1, kSoftmaxOfChosen = 2 };

/// A score's softmax among some others.
struct Softmax {
  float most, inverse;
  __device__ float of(float score) const { return expf(score - most) * inverse; }
};

/// Over the `count` scores of `chosen`, or the first `count` of all where it is null; the same in every lane.
__device__ inline Softmax warp_softmax(const float* scores, const int* chosen, int count) {
  float most = -INFINITY;
  for (int i = lane_index(); i < count; i += kWarpLanes) most = fmaxf(most, scores[chosen ? chosen[i] : i]);
  most = warp_max(most);
  double sum = 0;
  for (int i = lane_index(); i < count; i += kWarpLanes) sum += double(expf(scores[chosen ? chosen[i] : i] - most));
  return {most, float(1.0 / warp_sum(sum))};
}

__device__ inline float share_of(int by, Softmax softmax, float score) {
  return by == kSigmoid ? 1.0f / (1.0f + expf(-score)) : softmax.of(score);
}

/// The greatest score from `first` to `last` (exclusive), the lowest index on ties; the same in every lane.
__device__ inline Best greatest_score(const float* scores, int first, int last) {
  Best best = nothing_yet();
  for (int e = first + lane_index(); e < last; e += kWarpLanes) best = better_of(best, scores, e);
  return warp_best(best);
}

/// Takes `count` times the greatest score out of `scores`, which it spoils; ids go to `chosen` where it is not null.
/// Gives the sum of the scores taken.
__device__ inline float take_greatest(float* scores, int first, int last, int count, int* chosen) {
  float sum = 0;
  for (int i = 0; i < count; i++) {
    Best best = greatest_score(scores, first, last);
    if (best.index >= last) best.index = first;  // no score is a number
    sum += best.value;
    if (lane_index() == 0) {
      if (chosen) chosen[i] = best.index;
      scores[best.index] = -INFINITY;
    }
    __syncwarp();
  }
  return sum;
}

/// Sets the scores of all but the `kept` best groups of `size` experts to minus infinity; a group's score is the sum of
/// its two best. `spoiled` holds the scores too.
__device__ inline void keep_groups(float* scores, float* spoiled, float* of_group, int size, int groups, int kept) {
  for (int g = 0; g < groups; g++) {
    const float sum = take_greatest(spoiled, g * size, (g + 1) * size, size < 2 ? size : 2, nullptr);
    if (lane_index() == 0) of_group[g] = -sum;
  }
  __syncwarp();
  for (int dropped = 0; dropped < groups - kept; dropped++) {
    Best worst = nothing_yet();
    for (int g = groups - 1 - lane_index(); g >= 0; g -= kWarpLanes)  // of equal groups the later one goes
      worst = better(worst, Best{of_group[g], groups - 1 - g});
    worst = warp_best(worst);
    const int group = max(groups - 1 - worst.index, 0);  // no score is a number
    __syncwarp();
    if (lane_index() == 0) of_group[group] = -INFINITY;
    for (int e = group * size + lane_index(); e < (group + 1) * size; e += kWarpLanes) scores[e] = -INFINITY;
    __syncwarp();
  }
}

/// Dynamic shared memory of `top_choice`: every expert's score twice, and every group's.
constexpr int top_choice_shared_bytes(int experts, int groups) { return (2 * experts + groups) * int(sizeof(float)); }

/// A warp writes to `chosen` the `count` experts with the greatest p + bias[e] (bias null: none), greatest first, the
/// lower id on ties; p is the softmax or sigmoid of r[e], or, by kSoftmaxOfChosen, r[e] itself. With groups > 1 only
/// experts of the `kept` best groups count; a group's score is the sum of its two best. `shared` is as
/// top_choice_shared_bytes says.
__device__ inline void choose_experts(int* chosen, float* shared, const float* r, const float* bias, int experts,
                                      int count, int groups, int kept, int by) {
  float *scores = shared, *spoiled = scores + experts, *of_group = spoiled + experts;
  const Softmax softmax = by == kSoftmax ? warp_softmax(r, nullptr, experts) : Softmax{};
  for (int e = lane_index(); e < experts; e += kWarpLanes) {
    const float p = by == kSoftmaxOfChosen ? r[e] : share_of(by, softmax, r[e]);
    scores[e] = spoiled[e] = p + (bias ? bias[e] : 0.0f);
  }
  __syncwarp();
  if (groups > 1) keep_groups(scores, spoiled, of_group, experts / groups, groups, kept);
  take_greatest(scores, 0, experts, count, chosen);
}

/// ids[t] = the experts chosen by r[t]. Grid: a warp a token.
__global__ void top_choice(int* ids, const float* r, const float* bias, int experts, int count, int groups, int kept,
                           int by) {
  follow_producer();
  LANE_DYNAMIC_SHARED(float, shared);
  const int64_t token = blockIdx.x;
  choose_experts(ids + token * count, shared, r + token * experts, bias, experts, count, groups, kept, by);
}

/// A warp writes share[i] = the weight of the i-th chosen expert: softmax over all, sigmoid, or softmax over the chosen
/// of `scores`, without any selection bias; divided by their sum where `normalised`; times factor.
__device__ inline void share_chosen(float* share, const float* scores, const int* chosen, int experts, int count,
                                    int by, int normalised, float factor) {
  constexpr float kLeast = 6.103515625e-5f;  // 2^-14: what keeps the quotient finite where all shares vanish
  const bool of_chosen = by == kSoftmaxOfChosen;
  const Softmax softmax = warp_softmax(scores, of_chosen ? chosen : nullptr, of_chosen ? count : experts);
  double taken = 0;
  for (int i = 0; i < count; i++) taken += double(share_of(by, softmax, scores[chosen[i]]));  // alike in every lane
  const float scale = factor / (normalised ? fmaxf(float(taken), kLeast) : 1.0f);
  for (int i = lane_index(); i < count; i += kWarpLanes) share[i] = share_of(by, softmax, scores[chosen[i]]) * scale;
}

/// share[t] = the shares of the experts ids[t] by the scores r[t]. Grid: a warp a token.
__global__ void chosen_share(float* share, const float* r, const int* ids, int experts, int count, int by,
                             int normalised, float factor) {
  follow_producer();
  const int64_t token = blockIdx.x;
  share_chosen(share + token * count, r + token * experts, ids + token * count, experts, count, by, normalised, factor);
}

/// out[t][i][c] = y[t][i][c] + bias[ids[t][i]][c]. `total` is tokens * count * columns.
__global__ void expert_bias(float* out, const float* y, const float* bias, const int* ids, int total, int columns) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < total) out[i] = y[i] + bias[int64_t(ids[i / columns]) * columns + i % columns];
}

/// out[t][c] = sum over i of share[t][i] * d[t][i][c], + residual[t][c] where that is not null. `total` is tokens *
/// columns.
__global__ void expert_sum(float* out, const float* d, const float* share, const float* residual, int total, int count,
                           int columns) {
  follow_producer();
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= total) return;
  const int token = at / columns, column = at % columns;
  float sum = 0;
  for (int i = 0; i < count; i++)
    sum = fmaf(share[int64_t(token) * count + i], d[(int64_t(token) * count + i) * columns + column], sum);
  out[at] = residual ? sum + residual[at] : sum;
}

}  // namespace LANE_NAMESPACE
