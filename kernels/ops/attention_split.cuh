// Attention of one token a sequence over an F16 cache, split over the context and combined in the same launch: for
// decode steps and batches (sm_80 and up).
//
//   attention_split<Width, ValueWidth, Heads>(out, keys, values, partial, arrived, q, k, v, q_norm, k_norm, epsilon,
//       rotary, turned, neighbours, sinks, pos, slots, state_stride, sequences, groups, heads_per_group, splits, scale,
//       window, limit)
//
//   out, q          [sequences][groups * heads_per_group][ValueWidth, Width]
//   k, v            [sequences][groups][Width, ValueWidth]: the token's own rows, normed and turned as told, written
//   into
//                   the caches, and attended to. Both null: the caches have them, and q is ready
//   keys, values    the caches: row p, of `groups` heads, is position p
//   q_norm, k_norm  weights [Width] of an RMS norm of each head, or null
//   rotary          (cos, sin) of [position][turned / 2], or null; pairs as in ops/position.cuh; 16-aligned rows
//   sinks           a score a head that takes its share and gives no value, or null
//   partial         attention_split_partial_floats floats a sequence and part, of this launch alone
//   arrived         [parts] in each sequence's state, zero before the first launch; every launch leaves zeros
//   scale, window, limit as in ops/attention.cuh
//   splits          at most, of each part of a sequence; parts = groups * heads_per_group / Heads
//   grid, threads, shared bytes, splits: attention_split_geometry
//
// Heads (a divisor of heads_per_group, 8 at most) query heads share each read of keys and values. Which rows a split
// takes depends on the position, the window and the number of splits alone, and every sum has one order: a sequence's
// bits do not depend on the batch.
//
// Each warp streams tiles of 16 rows into its own ring by asynchronous copies, the first before the launch waits for
// its producer: no launch of a step but this writes the caches, see note [dependent launches]. Bulk copies would be of
// a row each, and a warp issues those one after the other: 2 us before the first tile was on its way. Scores and sums
// are products on tensor cores with the heads as rows of A: rows 0 to 7 hold halves of the queries (or of the weights),
// rows 8 to 15 what the rounding left, so nothing is lost that a float would keep. A lane's 16 bytes of a cache row are
// fragments of B as they lie, once columns are numbered to suit, and any numbering serves a sum.
#pragma once
#include "base/async_copy.cuh"
#include "base/keep_loop.h"
#include "base/launch.cuh"
#include "base/mma.cuh"
#include "base/warp.cuh"
#include "ops/attention_join.cuh"
#include "ops/attention_score.cuh"
#include "ops/attention_split_geometry.h"
#include "ops/attention_token.cuh"

namespace LANE_NAMESPACE {

template <int KeyWidth, int ValuesWidth, int HeadCount>
struct SplitShape {
  static constexpr int kWidth = KeyWidth, kValueWidth = ValuesWidth, kHeads = HeadCount, kValues = kHeads * kValueWidth;
  static constexpr int kWarps = attention_split_warps(kValueWidth), kThreads = 32 * kWarps;
  static constexpr int kKeyPieces = (kWidth + 31) / 32;  // a lane's 16-byte pieces of a key: four lanes hold a row
  static constexpr int kValuePieces = (kValueWidth + 63) / 64;  // of a value: eight lanes hold a row
  static constexpr int kKeyStride = split_key_stride(kWidth), kValueStride = split_value_stride(kValueWidth);
  static constexpr int kTileBytes = split_tile_bytes(kWidth, kValueWidth), kRing = split_ring(kWidth, kValueWidth);
  static_assert(attention_split_fits(kWidth, kValueWidth, kHeads), "heads that this kernel's tiles cannot hold");
};

/// The cached rows [begin, end) of a split, and how many splits have rows. The token's own row is the last active
/// split's.
struct SplitRange {
  int begin, end, active;
};
__device__ __forceinline__ SplitRange split_range(int position, int window, int split, int most_splits) {
  const int first = window > 0 && position >= window ? position - window + 1 : 0, rows = position - first;
  const int active = max(1, min(most_splits, (rows + kSplitRows - 1) / kSplitRows));
  const int each = (rows + active - 1) / active;
  return {min(first + split * each, position), min(first + (split + 1) * each, position), active};
}

/// A block's dynamic shared memory.
template <class S>
struct SplitShared {
  SplitTokenMemory token;
  float* sums;  // the warps' runs, where the heads were
  uint8_t* rings;

  __device__ __forceinline__ explicit SplitShared(uint8_t* shared) {
    uint8_t *key = shared + S::kKeyPieces * 1024, *value = key + 2 * S::kWidth;
    sums = reinterpret_cast<float*>(value + 2 * S::kValueWidth);
    token = {reinterpret_cast<uint4*>(shared), key, value, sums};
    rings = shared + split_fixed_bytes(S::kWidth, S::kValueWidth, S::kHeads);
  }
};

/// One warp's softmax and sums over its rows: of head g in lanes 4 g to 4 g + 3, see note [fragments of mma].
template <class S>
struct SplitRows {
  int g, c;
  float most, sum, total[S::kValuePieces][8][4];

  __device__ __forceinline__ SplitRows() {
    g = lane_index() / 4, c = lane_index() % 4, most = -INFINITY, sum = 0;
    LANE_UNROLL
    for (int i = 0; i < S::kValuePieces * 32; i++) total[i / 32][i / 4 % 8][i % 4] = 0;
  }

  /// Scores of head g with rows 2c, 2c + 1, 2c + 8, 2c + 9 of a tile, of which `count` count; -infinity for the others.
  __device__ __forceinline__ void score(const uint4* query, const uint8_t* keys, int stride, int count,
                                        const AttentionScore& rule, float (&scores)[4]) const {
    float near_dots[2][4] = {}, far_dots[2][4] = {};  // apart: a product waits for the one before it in its sum
    LANE_UNROLL
    for (int j = 0; j < S::kKeyPieces; j++) {
      const uint4 near = query[2 * j * 32 + lane_index()], far = query[(2 * j + 1) * 32 + lane_index()];
      const int piece = min(c + 4 * j, S::kWidth / 8 - 1);  // see note [no branch at a product]
      const int place = stride ? split_key_place(S::kWidth, g, piece) : piece;
      LANE_UNROLL
      for (int i = 0; i < 2; i++) {
        const uint4 key = reinterpret_cast<const uint4*>(keys + (g + 8 * i) * stride)[place];
        mma_half(near_dots[i], near, key.x, key.y);
        mma_half(far_dots[i], far, key.z, key.w);
      }
    }
    LANE_UNROLL
    for (int i = 0; i < 4; i++) {
      const float *a = near_dots[i / 2] + i % 2, *b = far_dots[i / 2] + i % 2;
      scores[i] = (a[0] + b[0]) + (a[2] + b[2]);
    }
    rule.apply(scores);
    LANE_UNROLL
    for (int i = 0; i < 4; i++) scores[i] = 2 * c + i % 2 + i / 2 * 8 < count ? scores[i] : -INFINITY;
  }

  /// Scores become weights; what was summed before shrinks where a greater score came. `first`: nothing was.
  __device__ __forceinline__ void weigh(float (&scores)[4], bool first) {
    float greatest = fmaxf(fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3]));
    greatest = fmaxf(greatest, __shfl_xor_sync(LANE_FULL_WARP, greatest, 1));
    greatest = fmaxf(greatest, __shfl_xor_sync(LANE_FULL_WARP, greatest, 2));
    const float next = fmaxf(most, greatest), shrink = next == -INFINITY ? 1.f : fast_exp2(most - next);
    most = next;
    if (!first) {
      sum *= shrink;
      LANE_UNROLL
      for (int i = 0; i < S::kValuePieces * 32; i++) total[i / 32][i / 4 % 8][i % 4] *= shrink;
    }
    LANE_UNROLL
    for (int i = 0; i < 4; i++) {
      scores[i] = scores[i] == -INFINITY ? 0.f : fast_exp2(scores[i] - most);
      sum += scores[i];
    }
  }

  /// Adds the tile's values; a lane's are of rows 2c, 2c + 1, 2c + 8 and 2c + 9.
  __device__ __forceinline__ void add(const float (&weights)[4], const uint8_t* values, int stride) {
    const HalfPair near = split_to_halves(weights[0] * kAttentionWeightScale, weights[1] * kAttentionWeightScale);
    const HalfPair far = split_to_halves(weights[2] * kAttentionWeightScale, weights[3] * kAttentionWeightScale);
    const uint4 a = make_uint4(near.high, near.rest, far.high, far.rest);
    LANE_UNROLL
    for (int j = 0; j < S::kValuePieces; j++) {
      const int piece = min(g + 8 * j, S::kValueWidth / 8 - 1);  // others' sums are not stored
      const int place = stride ? split_value_place(S::kValueWidth, 2 * c, piece) : piece;
      uint32_t word[4][4];
      LANE_UNROLL
      for (int i = 0; i < 4; i++) {
        const uint4 v = reinterpret_cast<const uint4*>(values + (2 * c + i % 2 + i / 2 * 8) * stride)[place];
        word[i][0] = v.x, word[i][1] = v.y, word[i][2] = v.z, word[i][3] = v.w;
      }
      LANE_UNROLL
      for (int t = 0; t < 8; t++) {
        const uint32_t select = t % 2 ? 0x7632 : 0x5410;
        mma_half(total[j][t], a, __byte_perm(word[0][t / 2], word[1][t / 2], select),
                 __byte_perm(word[2][t / 2], word[3][t / 2], select));
      }
    }
  }

  /// The warp's sums into its run; where it had no row, that alone.
  __device__ __forceinline__ void store(const WarpRuns<S>& runs) {
    sum += __shfl_xor_sync(LANE_FULL_WARP, sum, 1);
    sum += __shfl_xor_sync(LANE_FULL_WARP, sum, 2);
    if (g >= S::kHeads) return;
    if (c == 0) runs.most(g)[warp_index()] = most, runs.sum(g)[warp_index()] = sum;
    if (most == -INFINITY) return;
    LANE_UNROLL
    for (int i = 0; i < S::kValuePieces * 4; i++) {
      const int j = i / 4, side = i / 2 % 2, t = 4 * (i % 2), piece = 2 * (2 * c + side + 8 * j) + i % 2;
      const auto value = [&](int k) {
        return (total[j][t + k][side] + total[j][t + k][side + 2]) * (1.f / kAttentionWeightScale);
      };
      if (piece < S::kValueWidth / 4)
        *runs.values(warp_index(), g, piece) = make_float4(value(0), value(1), value(2), value(3));
    }
  }
};

/// A warp's ring of tiles: its share of the split's rows are tiles kWarps apart.
template <class S>
struct SplitRing {
  uint8_t* tiles;
  int row, end;  // of the next tile to be copied, and of the split

  /// `Pieces` pieces of 16 bytes of each of a tile's rows, the next one's `step` bytes behind; `place` of a row and a
  /// piece says where. Rows beyond the end repeat the last: their weights are 0, and what they multiply must be finite.
  template <int Pieces, class Place>
  __device__ __forceinline__ void copy_rows(uint8_t* to, int stride, const uint8_t* from, int64_t step,
                                            Place place) const {
    LANE_UNROLL_4
    for (int i = lane_index(); i < kSplitTile * Pieces; i += 32) {
      const int r = i / Pieces, piece = i % Pieces;
      async_copy(to + r * stride + 16 * place(r, piece), from + min(row + r, end - 1) * step + 16 * piece);
    }
  }
  /// By the whole warp. Each call is a group of copies, empty where no tile is left.
  __device__ __forceinline__ void copy_next(const SplitPlaces& at, int slot) {
    uint8_t* tile = tiles + slot * S::kTileBytes;
    if (row < end) {
      copy_rows<S::kWidth / 8>(tile, S::kKeyStride, at.keys, at.key_row,
                               [](int r, int piece) { return split_key_place(S::kWidth, r, piece); });
      copy_rows<S::kValueWidth / 8>(tile + kSplitTile * S::kKeyStride, S::kValueStride, at.values, at.value_row,
                                    [](int r, int piece) { return split_value_place(S::kValueWidth, r, piece); });
    }
    end_copy_group();
    row += S::kWarps * kSplitTile;
  }
  __device__ __forceinline__ void start(const SplitPlaces& at) {
    LANE_KEEP_LOOP
    for (int i = 0; i < S::kRing; i++) copy_next(at, i);
  }
  /// The oldest tile on its way has arrived.
  __device__ __forceinline__ void wait() const {
    wait_copy_groups<S::kRing - 1>();
    __syncwarp();
  }
};

/// The warp's tiles, and last the token's own row where `own`: a tile whose rows are all that one, and one of them
/// counts.
template <class S>
__device__ __forceinline__ void attend(SplitRows<S>& rows, SplitRing<S>& ring, const SplitPlaces& at,
                                       const SplitRange& range, const SplitShared<S>& shared,
                                       const AttentionScore& rule, bool own) {
  int slot = 0, row = range.begin + warp_index() * kSplitTile;
  bool cached = row < range.end, first = true;
  LANE_KEEP_LOOP
  while (cached || own) {
    const uint8_t* keys = cached ? ring.tiles + slot * S::kTileBytes : shared.token.key;
    const uint8_t* values = cached ? keys + kSplitTile * S::kKeyStride : shared.token.value;
    if (cached) ring.wait();
    float weights[4];
    rows.score(shared.token.query, keys, cached ? S::kKeyStride : 0, cached ? range.end - row : 1, rule, weights);
    rows.weigh(weights, first);
    first = false;
    rows.add(weights, values, cached ? S::kValueStride : 0);
    row += S::kWarps * kSplitTile;
    if (!cached || (row >= range.end && !own)) break;
    __syncwarp();
    ring.copy_next(at, slot);
    cached = row < range.end;
    if (++slot == S::kRing) slot = 0;
  }
}

template <int Width, int ValueWidth, int Heads>
__global__ void __launch_bounds__(32 * attention_split_warps(ValueWidth), 2)
    attention_split(float* out, uint8_t* keys, uint8_t* values, float* partial, int* arrived, const float* q,
                    const float* k, const float* v, const float* q_norm, const float* k_norm, float epsilon,
                    const float* rotary, int turned, int neighbours, const float* sinks, const int* pos,
                    const int* slots, int64_t state_stride, int sequences, int groups, int heads_per_group, int splits,
                    float scale, int window, float limit) {
  using S = SplitShape<Width, ValueWidth, Heads>;
  LANE_DYNAMIC_SHARED(uint8_t, dynamic_shared_bytes);
  const SplitShared<S> shared(dynamic_shared_bytes);
  admit_consumer();
  const int parts = groups * heads_per_group / Heads, split = static_cast<int>(blockIdx.x) % splits;
  const int part = static_cast<int>(blockIdx.x) / splits % parts;
  const int64_t sequence = static_cast<int>(blockIdx.x) / splits / parts, heads = groups * heads_per_group;
  const int position = sequence < sequences ? pos[sequence] : 0;
  const SplitRange range = split_range(position, window, split, splits);
  if (sequence >= sequences || split >= range.active) {
    await_producer();  // see note [a block a multiprocessor]
    return;
  }
  const int first_head = part * Heads, group = first_head / heads_per_group;
  const int64_t slot = slots[sequence] * state_stride;
  const SplitPlaces at{position, keys + slot + 2 * group * Width, values + slot + 2 * group * ValueWidth,
                       int64_t(2) * groups * Width, int64_t(2) * groups * ValueWidth};
  SplitRing<S> ring{shared.rings + warp_index() * S::kRing * S::kTileBytes, range.begin + warp_index() * kSplitTile,
                    range.end};
  ring.start(at);
  if (!rotary) turned = 0;
  const AttentionScore rule{scale, limit};
  const SplitToken token{q + (sequence * heads + first_head) * Width,
                         k ? k + (sequence * groups + group) * Width : nullptr,
                         k ? v + (sequence * groups + group) * ValueWidth : nullptr,
                         q_norm,
                         k_norm,
                         epsilon,
                         rotary + static_cast<int64_t>(position) * turned,
                         turned,
                         neighbours,
                         rule.query_scale()};
  const bool owner = split == range.active - 1;
  TokenBringer<S> bringer(token, shared.token, at, owner, first_head % heads_per_group == 0);
  const SplitFinish<S> finish(
      {partial + (sequence * parts + part) * attention_split_partial_floats(splits, Heads, ValueWidth), range.active},
      split, out + (sequence * heads + first_head) * ValueWidth,
      reinterpret_cast<int*>(reinterpret_cast<uint8_t*>(arrived) + slot) + part, sinks ? sinks + first_head : nullptr);
  await_producer();

  bringer.bring();
  __syncthreads();
  SplitRows<S> rows;
  attend(rows, ring, at, range, shared, rule, owner && warp_index() == S::kWarps - 1);
  const WarpRuns<S> warps{shared.sums};
  rows.store(warps);
  __syncthreads();
  finish_split(warps, finish);
}

}  // namespace LANE_NAMESPACE
