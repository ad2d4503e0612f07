// What split attention sums apart, joined: a block's warps, and then the blocks that share a head's context. S is a
// SplitShape of ops/attention_split.cuh.
#pragma once
#include "base/arrive.cuh"
#include "base/keep_loop.h"
#include "base/launch.cuh"
#include "base/warp.cuh"
#include "ops/attention_score.cuh"
#include "ops/attention_split_geometry.h"

namespace LANE_NAMESPACE {

/// What a block's warps summed, in shared memory: of each warp and head, split_run_pieces pieces of four values; then
/// [Heads][kWarps] greatest scores, -infinity where a warp had no row, and [Heads][kWarps] sums of weights. Pieces
/// change places so that the lanes that store four of a head and four of the next one meet no bank twice.
template <class S>
struct WarpRuns {
  static constexpr int kPieces = split_run_pieces(S::kValueWidth);
  float* floats;
  __device__ __forceinline__ float4* values(int warp, int h, int piece) const {
    return reinterpret_cast<float4*>(floats) + (warp * S::kHeads + h) * kPieces +
           (piece ^ (piece >> 3 & 1) ^ (h & 1) << 1);
  }
  __device__ __forceinline__ float* most(int h) const {
    return floats + S::kWarps * S::kHeads * kPieces * 4 + h * S::kWarps;
  }
  __device__ __forceinline__ float* sum(int h) const { return most(h) + S::kHeads * S::kWarps; }
};

/// What splits summed: `count` runs of [Heads][ValueWidth] values, then their greatest scores and sums of
/// weights.
template <class S>
struct SplitRuns {
  float* floats;
  int count;  // of the splits that have rows
  __device__ __forceinline__ float* values(int run, int h) const {
    return floats + run * S::kValues + h * S::kValueWidth;
  }
  __device__ __forceinline__ float* most(int run) const { return floats + count * S::kValues + run * 2 * S::kHeads; }
  __device__ __forceinline__ float* sum(int run) const { return most(run) + S::kHeads; }
};

/// The warps' runs joined into `to`, [Heads][ValueWidth], in their order. Where that is a run of several, its greatest
/// scores and sums of weights are written to `joined_most`, too; else the values are finished. Each thread weighs the
/// runs by itself: there are few, and a barrier costs more.
template <class S>
__device__ __forceinline__ void join_warps(float* to, const WarpRuns<S>& runs, const float* sinks, float* joined_most) {
  LANE_KEEP_LOOP
  for (int i = threadIdx.x; i < S::kValues / 4; i += S::kThreads) {
    const int h = i / (S::kValueWidth / 4), piece = i % (S::kValueWidth / 4);
    const float sink = sinks ? sinks[h] * AttentionScore::kLog2e : -INFINITY;
    float most = sink, share[S::kWarps];
    float4 x[S::kWarps];
    LANE_UNROLL
    for (int w = 0; w < S::kWarps; w++) share[w] = runs.most(h)[w], most = fmaxf(most, share[w]);
    LANE_UNROLL
    for (int w = 0; w < S::kWarps; w++)
      x[w] = share[w] == -INFINITY ? make_float4(0, 0, 0, 0) : *runs.values(w, h, piece);
    float sum = sinks ? fast_exp2(sink - most) : 0.f;
    float4 v = make_float4(0, 0, 0, 0);
    LANE_UNROLL
    for (int w = 0; w < S::kWarps; w++) {
      const float s = share[w] == -INFINITY ? 0.f : fast_exp2(share[w] - most);
      sum = fmaf(s, runs.sum(h)[w], sum);
      v.x = fmaf(s, x[w].x, v.x), v.y = fmaf(s, x[w].y, v.y), v.z = fmaf(s, x[w].z, v.z), v.w = fmaf(s, x[w].w, v.w);
    }
    const float f = joined_most ? 1.f : __fdividef(1.f, sum);
    reinterpret_cast<float4*>(to)[i] = make_float4(v.x * f, v.y * f, v.z * f, v.w * f);
    if (joined_most && i % (S::kValueWidth / 4) == 0) joined_most[h] = most, joined_most[S::kHeads + h] = sum;
  }
}

/// The share of each split's run in the whole, `shares` [Heads][2 * count] in shared memory (the second half of a
/// head's is scratch), and each head's factor that finishes its values: a warp a head.
template <class S>
__device__ __forceinline__ void weigh_splits(const SplitRuns<S>& runs, float* shares, float* factors,
                                             const float* sinks) {
  LANE_KEEP_LOOP
  for (int h = warp_index(); h < S::kHeads; h += S::kWarps) {
    float most = sinks ? sinks[h] * AttentionScore::kLog2e : -INFINITY, sum = 0;
    const float sink = most;
    float *share = shares + h * 2 * runs.count, *sums = share + runs.count;
    LANE_UNROLL_4
    for (int i = lane_index(); i < runs.count; i += 32) {
      share[i] = __ldcg(runs.most(i) + h), sums[i] = __ldcg(runs.sum(i) + h);
      most = fmaxf(most, share[i]);
    }
    most = warp_max(most);
    LANE_KEEP_LOOP
    for (int i = lane_index(); i < runs.count; i += 32) {
      share[i] = share[i] == -INFINITY ? 0.f : fast_exp2(share[i] - most);
      sum = fmaf(share[i], sums[i], sum);
    }
    sum = warp_sum(sum);
    if (sinks) sum += fast_exp2(sink - most);
    if (lane_index() == 0) factors[h] = __fdividef(1.f, sum);
  }
  __syncthreads();
}

/// Joins the splits' runs into `to`, [Heads][ValueWidth]: each value's runs in their order, kSplitBatch of them on
/// their way at once.
template <class S>
__device__ __forceinline__ void join_splits(float* to, const SplitRuns<S>& runs, const float* shares,
                                            const float* factors) {
  LANE_KEEP_LOOP
  for (int i = threadIdx.x; i < S::kValues / 4; i += S::kThreads) {
    const int h = i / (S::kValueWidth / 4);
    float4 v = make_float4(0, 0, 0, 0);
    LANE_KEEP_LOOP
    for (int first = 0; first < runs.count; first += kSplitBatch) {
      float4 x[kSplitBatch];
      LANE_UNROLL
      for (int b = 0; b < kSplitBatch; b++)
        x[b] = __ldcg(reinterpret_cast<const float4*>(runs.values(min(first + b, runs.count - 1), 0)) + i);
      LANE_UNROLL
      for (int b = 0; b < kSplitBatch; b++) {
        const float share = first + b < runs.count ? shares[h * 2 * runs.count + first + b] : 0.f;
        v.x = fmaf(share, x[b].x, v.x), v.y = fmaf(share, x[b].y, v.y);
        v.z = fmaf(share, x[b].z, v.z), v.w = fmaf(share, x[b].w, v.w);
      }
    }
    const float f = factors[h];
    reinterpret_cast<float4*>(to)[i] = make_float4(v.x * f, v.y * f, v.z * f, v.w * f);
  }
}

/// Where a block's sums go: straight into the result where there is one split, else through the splits' runs and the
/// last block. Known before the launch's producer has ended, and made then: it is a hundred instructions.
template <class S>
struct SplitFinish {
  SplitRuns<S> splits;
  float *out, *to, *most;  // the result; where the block's values go, and if that is a run, what goes with them
  int* arrived;
  const float *sinks, *warps_sinks;  // the whole's; those that the block counts itself

  __device__ __forceinline__ SplitFinish(const SplitRuns<S>& runs, int split, float* result, int* counter,
                                         const float* sink_scores)
      : splits(runs), out(result), arrived(counter), sinks(sink_scores) {
    to = alone() ? out : splits.values(split, 0), most = alone() ? nullptr : splits.most(split);
    warps_sinks = alone() ? sinks : nullptr;
    make_here(to), make_here(most), make_here(warps_sinks);
  }
  __device__ __forceinline__ bool alone() const { return splits.count == 1; }
};

/// The block's warps, joined, and the splits by the last block.
template <class S>
__device__ __forceinline__ void finish_split(const WarpRuns<S>& warps, const SplitFinish<S>& finish) {
  const SplitRuns<S>& splits = finish.splits;
  join_warps(finish.to, warps, finish.warps_sinks, finish.most);
  if (finish.alone() || !arrives_last(finish.arrived, splits.count)) return;
  __shared__ float factors[S::kHeads];
  weigh_splits(splits, warps.floats, factors, finish.sinks);
  join_splits(finish.out, splits, warps.floats, factors);
}

}  // namespace LANE_NAMESPACE
