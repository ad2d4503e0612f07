// The warps of a product of a chunk's many tokens (ops/chunk_product.cuh) that multiply.
//
// note [strands]
// Where few columns share a factor a block's tokens are two strands, with a part of the sums each: while the tensor
// cores have one strand's products, the other's part, times its factor, is added to its sums.
//
// note [turns]
// A product of fragments is issued no earlier than the tensor cores take it. Fours of warps that issue theirs at the
// same time would unpack at the same time, too, and leave the tensor cores idle: so they take turns.
#pragma once
#include "base/group_barrier.cuh"
#include "base/keep_loop.h"
#include "base/role_ring.cuh"
#include "layout/half_weights.cuh"
#include "ops/chunk_shape.cuh"

namespace LANE_NAMESPACE {

/// Four of the warps that multiply. A lane has two rows of each fragment, `tile_row` and the eighth below.
template <class S>
struct HalvesConsumer {
  using L = typename S::L;
  static constexpr int kSixteens = kChunkColumns / 16, kOfPiece = kSixteens / S::kPieces;
  static constexpr int kStrandTokens = S::kTokens / S::kStrands, kStrandSums = kStrandTokens / 2;
  using Fragments = uint4[kSixteens];  // a step's weights, of sixteens of columns
  const HalvesShared<S>& shared;
  const RoleRing<S::kRing>& steps;
  const WindowRing<S::kWindowSlots>& windows;
  int tile_row, c, four;                                // four: of the fours of warps
  int split = S::kSplits == 1 ? 0 : four / S::kGroups;  // these warps have every kSplits-th step from it on
  float sums[S::kSums] = {};
  float parts[S::kStrands][kStrandSums] = {};

  __device__ __forceinline__ HalfFactors factors(const HalvesStep<S>& step, int block, int below) const {
    return HalfWeights<L>::factors(shared.row(step.window, tile_row + below), step.blocks, block);
  }
  /// Block `i` of a step.
  __device__ __forceinline__ void unpack(Fragments& a, const HalvesStep<S>& step, int i) const {
    const int block = step.first + i;
    uint2 halves[2][2];  // of a row, of a word
    LANE_UNROLL
    for (int r = 0; r < 2; r++) {
      const HalvesOfCodes<L> convert(L::kScaleHeader ? factors(step, block, 8 * r).multiplier : 1);
      const uint2 codes = L::share(shared.row(step.window, tile_row + 8 * r), step.blocks, block, c);
      halves[r][0] = convert.of(codes.x), halves[r][1] = convert.of(codes.y);
    }
    LANE_UNROLL
    for (int word = 0; word < 2; word++)
      a[2 * i + word] = make_uint4(halves[0][word].x, halves[1][word].x, halves[0][word].y, halves[1][word].y);
  }
  /// What of the step behind `step` is unpacked behind one of its pieces: blocks in turn.
  __device__ __forceinline__ void unpack_next(Fragments& a, int step, int piece) const {
    if (step + S::kSplits >= S::kSteps) return;
    const HalvesStep<S> at(step), next(step + S::kSplits);
    if (piece == 0 && next.window != at.window) windows.await_window(next.window);
    LANE_UNROLL
    for (int i = 0; i < S::kBlocks; i++)
      if (i * S::kPieces / S::kBlocks == piece) unpack(a, next, i);
  }

  __device__ __forceinline__ void multiply(int strand, const Fragments& a, int step, int piece, bool begins_span) {
    const uint8_t* vectors = shared.vectors(step) + strand * kStrandTokens * kTileRowBytes;
    begin_tile_products();
    LANE_UNROLL
    for (int k = piece * kOfPiece; k < (piece + 1) * kOfPiece; k++) {
      LANE_UNROLL
      for (int word = 0; word < S::kWords; word++)
        add_fragment_product<kStrandTokens>(parts[strand], a[k], vectors + word * S::kTokens * kTileRowBytes, k,
                                            !begins_span || k > piece * kOfPiece || word > 0);
    }
    end_tile_products();
  }
  /// Adds a strand's part, behind which at most `Left` ends of products were, to its sums.
  template <int Left>
  __device__ __forceinline__ void add(int strand, float2 by) {
    await_earlier_products<Left>(parts[strand]);
    LANE_UNROLL
    for (int i = 0; i < kStrandSums; i++) {
      float& sum = sums[strand * kStrandSums + i];
      sum = fmaf(i / 2 % 2 ? by.y : by.x, parts[strand][i], sum);
    }
  }
  /// Of all strands, behind which nothing is under way.
  __device__ __forceinline__ void add_all(float2 by) {
    if constexpr (S::kStrands == 2) add<1>(0, by);
    add<0>(S::kStrands - 1, by);
  }
  /// What the sums of the piece's span are to be multiplied by.
  __device__ __forceinline__ float2 span_factors(const HalvesStep<S>& step, int piece) const {
    const int sixteen = piece * kOfPiece, block = step.first + sixteen / 2;
    return make_float2(factors(step, block, 0).factor[sixteen % 2], factors(step, block, 8).factor[sixteen % 2]);
  }

  __device__ __forceinline__ uint32_t minimum_pair(const HalvesStep<S>& step, int below) const {
    const auto minimum = [&](int block) {
      return static_cast<uint32_t>(
          block < step.blocks ? __half_as_ushort(__float2half(factors(step, block, below).minimum)) : 0);
    };
    return minimum(2 * c) | minimum(2 * c + 1) << 16;
  }
  /// Subtracts the minimums of the window that ends with `step`, times the sums of their blocks' vectors.
  __device__ __forceinline__ void subtract_minimums(int step, const HalvesStep<S>& at) {
    const uint32_t upper = minimum_pair(at, 0), lower = minimum_pair(at, 8);
    LANE_UNROLL
    for (int strand = 0; strand < S::kStrands; strand++) {
      begin_tile_products();
      multiply_core_tile<kStrandTokens>(parts[strand], make_uint4(upper, lower, upper, lower),
                                        shared.sums(step) + strand * kStrandTokens * kChunkTokenSumBytes);
      end_tile_products();
    }
    add_all(make_float2(-factors(at, 0, 0).minimum_factor, -factors(at, 0, 8).minimum_factor));
  }

  /// A step of a span of 256 columns, a whole window: its products stay under way while the next step's begin, unless
  /// the span ends.
  __device__ __forceinline__ void work_in_span(const Fragments& a, Fragments& next, int step, const HalvesStep<S>& at,
                                               int in_span) {
    await_turn(four);
    multiply(0, a, step, 0, in_span == 0);
    give_turn((four + 1) % S::kFours);
    await_tile_products<1>(parts[0]);
    if (step >= S::kSplits) steps.leave(step - S::kSplits);
    unpack_next(next, step, 0);
    if (in_span == S::kOfSpan - 1) add_all(span_factors(at, 0));
  }
  /// A step of several spans, or of one.
  __device__ __forceinline__ void work_on_spans(const Fragments& a, Fragments& next, int step,
                                                const HalvesStep<S>& at) {
    if (step >= S::kSplits) steps.leave(step - S::kSplits);
    float2 by = {0, 0};
    LANE_UNROLL
    for (int piece = 0; piece < S::kPieces; piece++) {
      LANE_UNROLL
      for (int strand = 0; strand < S::kStrands; strand++) {
        if (piece) add<S::kStrands - 1>(strand, by);
        multiply(strand, a, step, piece, true);
      }
      by = span_factors(at, piece);
      unpack_next(next, step, piece);
    }
    add_all(by);
  }
  /// A step, whose weights are `a`; meanwhile the next one's become `next`, which held the last one's.
  __device__ __forceinline__ void work(const Fragments& a, Fragments& next, int step, int in_span) {
    const HalvesStep<S> at(step);
    steps.await_step(step);
    if constexpr (S::kSpan == 256)
      work_in_span(a, next, step, at, in_span);
    else
      work_on_spans(a, next, step, at);
    if (L::kMinimums && at.ends_window()) subtract_minimums(step, at);
    if (step + S::kSplits < S::kSteps && HalvesStep<S>(step + S::kSplits).window != at.window) windows.leave(at.window);
    steps.end_step();
  }
  /// Of the kSplits steps from `step` on these warps' own.
  __device__ __forceinline__ void work_alone(const Fragments& a, Fragments& next, int step, int in_span) {
    for (int i = 0; i < split && step + i < S::kSteps; i++) steps.pass();
    if (S::kSteps % S::kRound == 0 || step + split < S::kSteps) work(a, next, step + split, in_span);
    for (int i = split + 1; i < S::kSplits && step + i < S::kSteps; i++) steps.pass();
  }
  __device__ __forceinline__ void run() {
    static_assert(S::kSplits <= most_splits(S::kColumns));
    Fragments even, odd;
    steps.begin();
    if (S::kSpan == 256 && four == S::kFours - 1) give_turn(0);
    windows.await_window(0);
    LANE_UNROLL
    for (int i = 0; i < S::kBlocks; i++) unpack(even, HalvesStep<S>(split), i);
    LANE_KEEP_LOOP
    for (int step = 0; step < S::kSteps; step += S::kRound) {
      LANE_UNROLL
      for (int i = 0; i < S::kRound / S::kSplits; i++)
        work_alone(i % 2 ? odd : even, i % 2 ? even : odd, step + i * S::kSplits, i % S::kOfSpan);
    }
  }
};

}  // namespace LANE_NAMESPACE
