// The warps of a product of a chunk's many tokens (ops/chunk_product.cuh) that multiply.
//
// note [strands]
// Where few columns share a factor a block's tokens are two strands, with a part of the sums each: while the tensor
// cores have one strand's products, the other's part, times its factor, is added to its sums.
//
// note [units]
// Where 256 columns share a factor d the sums themselves are what tensor cores add to, as multiples of the window's d:
// behind a window they become multiples of the next one's. The products with rests have parts of their own, since a
// product of eight-bit floats cuts off what it is added to. Minimums are multiples of d, too, each in two halves; where
// they are so many times larger that a half does not hold them, the unit is d times a power of two, and so are codes'
// halves divided. A d of 0 has a unit of 2^-60 or more. Only behind a window does a four wait for its own products.
#pragma once
#include "base/group_barrier.cuh"
#include "base/keep_loop.h"
#include "base/mma.cuh"
#include "base/role_ring.cuh"
#include "layout/half_weights.cuh"
#include "ops/chunk_shape.cuh"

namespace LANE_NAMESPACE {

/// Weights of a step, as fragments of halves, and of bytes.
using HalvesFragments = uint4[kChunkColumns / 16];
template <class S>
struct ByteFragments {
  uint4 coarse[S::kBlocks];
  uint4 lost[S::kLosesBits ? S::kBlocks : 1];
};

/// What a row's sums are multiples of in a window; a code's product is `power` of it, which is d / value.
struct RowUnit {
  float value;
  __half power;
};
/// With minimums up to 63 dmin, times the scale of blocks' sums, that a half holds.
__device__ __forceinline__ RowUnit row_unit(float d, float dmin) {
  constexpr float kMostRatio = 65504 * kSumScale / 64;
  const auto exponent = [](float v) { return static_cast<int>(__float_as_uint(v) >> 23 & 255); };
  const int least = exponent(fmaxf(fabsf(dmin) * (2 / kMostRatio), 0x1p-60f));
  const auto shift = static_cast<uint32_t>(max(0, least - exponent(d)));
  return {__uint_as_float(__float_as_uint(d) + (shift << 23)),
          __float2half(__uint_as_float((127 - min(shift, 126u)) << 23))};
}

/// Four of the warps that multiply. A lane has two rows of each fragment, `tile_row` and the eighth below; pairs of
/// floats are of those.
template <class S>
struct HalvesConsumer {
  using L = typename S::L;
  using Halves = HalvesFragments;
  using Bytes = ByteFragments<S>;
  static constexpr int kStrandTokens = S::kTokens / S::kStrands, kStrandSums = kStrandTokens / 2;
  const HalvesShared<S>& shared;
  const RoleRing<S::kRing>& steps;
  const WindowRing<S::kWindowSlots>& windows;
  int tile_row, c, four;                                // four: of the fours of warps
  uint32_t powers;                                      // HalvesOfCodes::kept_powers
  int split = S::kSplits == 1 ? 0 : four / S::kGroups;  // these warps have every kSplits-th step from it on
  float sums[S::kSums] = {};
  float parts[S::kStrands][kStrandSums] = {};
  RowUnit units[2] = {};  // note [units]

  __device__ __forceinline__ HalfFactors factors(const HalvesStep<S>& step, int block, int below) const {
    return HalfWeights<L>::factors(shared.row(step.window, tile_row + below), step.blocks, block);
  }
  /// The scales that codes of a step are multiplied by in their halves, of the row so many below.
  __device__ __forceinline__ HalfScales scales(const HalvesStep<S>& step, int below) const {
    return HalfWeights<L>::scales(shared.row(step.window, tile_row + below), step.blocks, step.first,
                                  units[below / 8].power);
  }
  /// Block `i` of a step; `s`: of a row.
  __device__ __forceinline__ void unpack(Halves& a, Bytes& bytes, const HalvesStep<S>& step, int i,
                                         const HalfScales (&s)[2]) const {
    FourHalves four_halves[2][2];  // of a row, of half a block
    LANE_UNROLL
    for (int r = 0; r < 2; r++) {
      const uint2 codes = L::share(shared.row(step.window, tile_row + 8 * r), step.blocks, step.first + i, c);
      four_halves[r][0] = HalvesOfCodes<L>(s[r].of[i][0], powers).of(codes.x);
      four_halves[r][1] = HalvesOfCodes<L>(s[r].of[i][1], powers).of(codes.y);
    }
    const auto& upper = four_halves[0];
    const auto& lower = four_halves[1];
    LANE_UNROLL
    for (int h = 0; h < 2; h++)
      a[2 * i + h] = make_uint4(upper[h].halves.x, lower[h].halves.x, upper[h].halves.y, lower[h].halves.y);
    if (S::kRests) bytes.coarse[i] = make_uint4(upper[0].coarse, lower[0].coarse, upper[1].coarse, lower[1].coarse);
    if (S::kLosesBits) bytes.lost[i] = make_uint4(upper[0].lost, lower[0].lost, upper[1].lost, lower[1].lost);
  }
  __device__ __forceinline__ void unpack(Halves& a, Bytes& bytes, const HalvesStep<S>& step) const {
    const HalfScales s[2] = {scales(step, 0), scales(step, 8)};
    LANE_UNROLL
    for (int i = 0; i < S::kBlocks; i++) unpack(a, bytes, step, i, s);
  }

  /// Of a block: its weights times what the vectors' halves lose, and what the weights' halves lose times the vectors.
  __device__ __forceinline__ void multiply_rests(int strand, const Bytes& a, int step, int block, bool accumulates) {
    const int first = strand * kStrandTokens * kByteTileRowBytes;
    add_byte_fragment_product<kStrandTokens>(parts[strand], a.coarse[block], shared.rests(step).behind(first), block,
                                             accumulates);
    if (S::kLosesBits)
      add_byte_fragment_product<kStrandTokens>(parts[strand], a.lost[block], shared.coarse(step).behind(first), block,
                                               true);
  }

  __device__ __forceinline__ uint32_t minimum_pair(const HalvesStep<S>& step, int below) const {
    const auto minimum = [&](int block) {
      return static_cast<uint32_t>(
          block < step.blocks ? __half_as_ushort(__float2half(factors(step, block, below).minimum)) : 0);
    };
    return minimum(2 * c) | minimum(2 * c + 1) << 16;
  }
  /// Begins the products of the minimums of the window that ends with `step` and the sums of their blocks' vectors.
  __device__ __forceinline__ void multiply_minimums(int step, const HalvesStep<S>& at) {
    const uint32_t upper = minimum_pair(at, 0), lower = minimum_pair(at, 8);
    LANE_UNROLL
    for (int strand = 0; strand < S::kStrands; strand++) {
      begin_tile_products();
      add_core_tile_product<kStrandTokens>(parts[strand], make_uint4(upper, lower, upper, lower),
                                           shared.sums(step).behind(strand * kStrandTokens * kChunkTokenSumBytes),
                                           false);
      end_tile_products();
    }
  }
  /// What those are to be multiplied by.
  __device__ __forceinline__ float2 minimum_factors(const HalvesStep<S>& at) const {
    constexpr float kFactor = -1 / kSumScale;
    return make_float2(kFactor * factors(at, 0, 0).minimum_factor, kFactor * factors(at, 0, 8).minimum_factor);
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

  // --- spans of 256 columns, note [units] ---

  __device__ __forceinline__ RowUnit unit_of(int window, int below) const {
    const HalfFactors f = HalfWeights<L>::factors(shared.row(window, tile_row + below), kChunkWindowBlocks, 0);
    return row_unit(f.factor * (1 / HalfWeights<L>::kUnit), L::kMinimums ? f.minimum_factor : 0.f);
  }
  /// A window's minimums of this lane's blocks as two halves, whose rests have halves again.
  struct Minimums {
    uint32_t halves[2], rests[2];
  };
  __device__ __forceinline__ Minimums minimums(int window) const {
    Minimums all{};
    LANE_UNROLL
    for (int r = 0; r < 2; r++) {
      const uint8_t* row = shared.row(window, tile_row + 8 * r);
      const HalfFactors first = HalfWeights<L>::factors(row, kChunkWindowBlocks, 2 * c),
                        second = HalfWeights<L>::factors(row, kChunkWindowBlocks, 2 * c + 1);
      const float factor = __fdividef(first.minimum_factor * (-1 / kSumScale), units[r].value);
      const HalfPair pair = split_to_halves(factor * first.minimum, factor * second.minimum);
      all.halves[r] = pair.high, all.rests[r] = pair.rest;
    }
    return all;
  }
  /// With ends of products behind the minimums, in a window's last step, the bytes, and the halves.
  __device__ __forceinline__ void multiply_in_units(const Halves& a, const Bytes& bytes, int step, bool begins_window,
                                                    bool ends_window, const Minimums& m) {
    if (L::kMinimums && ends_window) {
      begin_tile_products();
      add_core_tile_product<S::kTokens>(sums, make_uint4(m.halves[0], m.halves[1], m.halves[0], m.halves[1]),
                                        shared.sums(step), true);
      add_core_tile_product<S::kTokens>(sums, make_uint4(m.rests[0], m.rests[1], m.rests[0], m.rests[1]),
                                        shared.sums(step), true);
      end_tile_products();
    }
    begin_tile_products();
    LANE_UNROLL
    for (int i = 0; S::kRests && i < S::kBlocks; i++) multiply_rests(0, bytes, step, i, !begins_window || i > 0);
    end_tile_products();
    LANE_UNROLL
    for (int k = 0; k < kChunkColumns / 16; k++)
      add_fragment_product<S::kTokens>(sums, a[k], shared.halves(step), k, true);
    end_tile_products();
  }
  /// Takes the sums from the window's unit to the next one's, or to 1.
  __device__ __forceinline__ void end_window(const float (&unit)[2], const RowUnit (&next)[2]) {
    const float ratio[2] = {__fdividef(unit[0], next[0].value), __fdividef(unit[1], next[1].value)};
    await_tile_products<0>(sums);
    await_tile_products<0>(parts[0]);
    LANE_UNROLL
    for (int i = 0; i < S::kSums; i++) sums[i] = (S::kRests ? sums[i] + parts[0][i] : sums[i]) * ratio[i / 2 % 2];
  }
  /// Step `i` of the window's that are these warps'. Its products stay under way while the next step's begin, unless
  /// the window ends.
  __device__ __forceinline__ void work_in_units(const Halves& a, Halves& next, Bytes& bytes, int window, int i) {
    constexpr int kOfWindow = kChunkWindowBlocks / S::kBlocks;
    const int step = window * kOfWindow + i * S::kSplits + split;
    const bool ends = i == S::kOfSpan - 1, has_sums = ends && split == S::kSplits - 1;
    steps.await_step(step);
    const Minimums m = L::kMinimums && has_sums ? minimums(window) : Minimums{};
    multiply_in_units(a, bytes, step, i == 0, has_sums, m);
    await_tile_products<S::kAhead ? 1 : 0>(sums);
    if (S::kAhead && (window > 0 || i > 0)) steps.leave(step - S::kSplits);
    if (!S::kAhead && !ends) steps.leave(step);
    const int first = ((i + 1) % S::kOfSpan * S::kSplits + split) * S::kBlocks;
    if (!ends) {
      unpack(next, bytes, {window, first, kChunkWindowBlocks});
    } else {
      RowUnit then[2] = {{1, {}}, {1, {}}};
      const float before[2] = {units[0].value, units[1].value};
      if (window + 1 < S::kWindows) {
        windows.await_window(window + 1);
        then[0] = unit_of(window + 1, 0), then[1] = unit_of(window + 1, 8);
        units[0] = then[0], units[1] = then[1];
        unpack(next, bytes, {window + 1, first, kChunkWindowBlocks});
      }
      end_window(before, then);
      if (!S::kAhead) steps.leave(step);
      if (window + 1 < S::kWindows) windows.leave(window);
    }
    steps.end_step();
  }
  __device__ __forceinline__ void run_in_units(Halves& even, Halves& odd, Bytes& bytes) {
    static_assert(S::kColumns % 256 == 0);
    LANE_KEEP_LOOP
    for (int window = 0; window < S::kWindows; window += S::kOfSpan % 2 ? 2 : 1) {
      LANE_UNROLL
      for (int i = 0; i < (S::kOfSpan % 2 ? 2 : S::kOfSpan); i++) {
        const int at = S::kOfSpan == 1 ? window + i : window;
        if (S::kOfSpan == 1 && i && at == S::kWindows) break;
        pass_others(split);
        work_in_units(S::kAhead && i % 2 ? odd : even, S::kAhead && i % 2 == 0 ? odd : even, bytes, at,
                      S::kOfSpan == 1 ? 0 : i);
        pass_others(S::kSplits - 1 - split);
      }
    }
  }

  // --- spans of a block, note [strands] ---

  __device__ __forceinline__ void multiply_span(int strand, const Halves& a, const Bytes& bytes, int step, int piece) {
    begin_tile_products();
    if (S::kRests) multiply_rests(strand, bytes, step, piece, false);
    LANE_UNROLL
    for (int k = 2 * piece; k < 2 * piece + 2; k++)
      add_fragment_product<kStrandTokens>(parts[strand], a[k],
                                          shared.halves(step).behind(strand * kStrandTokens * kTileRowBytes), k,
                                          S::kRests || k > 2 * piece);
    end_tile_products();
  }
  /// A step, whose weights are `a`; meanwhile the next one's become `next`, which held the last one's.
  __device__ __forceinline__ void work_on_spans(const Halves& a, const Bytes& bytes, Halves& next, Bytes& next_bytes,
                                                int step) {
    const HalvesStep<S> at(step), then(min(step + S::kSplits, S::kSteps - 1));
    const bool more = step + S::kSplits < S::kSteps, ends = more && then.window != at.window;
    steps.await_step(step);
    if (step >= S::kSplits) steps.leave(step - S::kSplits);
    float2 by = {0, 0};
    LANE_UNROLL
    for (int piece = 0; piece < S::kPieces; piece++) {
      LANE_UNROLL
      for (int strand = 0; strand < S::kStrands; strand++) {
        if (piece) add<S::kStrands - 1>(strand, by);
        multiply_span(strand, a, bytes, step, piece);
      }
      by = make_float2(factors(at, at.first + piece, 0).factor, factors(at, at.first + piece, 8).factor);
      if (piece == 0 && ends) windows.await_window(then.window);
      if (more) unpack(next, next_bytes, then, piece, {});
    }
    add_all(by);
    if (L::kMinimums && at.ends_window()) multiply_minimums(step, at), add_all(minimum_factors(at));
    if (ends) windows.leave(at.window);
    steps.end_step();
  }
  __device__ __forceinline__ void run_on_spans(Halves& even, Halves& odd, Bytes& even_bytes) {
    Bytes odd_bytes;
    LANE_KEEP_LOOP
    for (int first = 0; first < S::kSteps; first += 2 * S::kSplits) {
      LANE_UNROLL
      for (int i = 0; i < 2; i++) {
        const int step = first + i * S::kSplits;
        pass_others(min(split, S::kSteps - step));
        if (S::kSteps % (2 * S::kSplits) == 0 || step + split < S::kSteps)
          work_on_spans(i ? odd : even, i ? odd_bytes : even_bytes, i ? even : odd, i ? even_bytes : odd_bytes,
                        step + split);
        pass_others(min(S::kSplits, S::kSteps - step) - split - 1);
      }
    }
  }

  /// Other splits' steps.
  __device__ __forceinline__ void pass_others(int count) const {
    for (int i = 0; i < count; i++) steps.pass();
  }
  __device__ __forceinline__ void run() {
    static_assert(S::kSplits <= most_splits(S::kColumns));
    Halves even, odd;
    Bytes bytes;
    steps.begin();
    windows.await_window(0);
    if (S::kSpan == 256) units[0] = unit_of(0, 0), units[1] = unit_of(0, 8);
    unpack(even, bytes, HalvesStep<S>(split));
    if constexpr (S::kSpan == 256)
      run_in_units(even, odd, bytes);
    else
      run_on_spans(even, odd, bytes);
  }
};

}  // namespace LANE_NAMESPACE
