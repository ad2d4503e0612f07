// Attention of several tokens a sequence over an F16 cache, on tensor cores: for chunks (sm_80 and up).
//
//   attention_chunk<Width, ValueWidth>(out, q, keys, values, sinks, pos, slots, state_stride, rows, groups,
//       heads_per_group, scale, window, limit)
//
//   out, q          [sequences][rows][groups * heads_per_group][ValueWidth, Width]; row r of sequence s stands at
//                   pos[s] + r and sees the caches up to there, or the last `window` rows of that where it is not 0
//   keys, values    the caches: row p, of `groups` heads, is position p; the chunk's own rows are there
//   sinks           a score a head that takes its share and gives no value, or null
//   scale, limit    as in ops/attention.cuh
//   grid            (ceil(rows * heads_per_group / kChunkQueries), groups * sequences)
//   threads         32 * kChunkWarps; shared bytes: attention_chunk_shared_bytes
//
// A block takes kChunkQueries queries of one group, the heads of a row side by side, so that they share each read of
// the caches; a warp has 16 of them. Tiles of the caches come by asynchronous copies, the next one while one is worked
// on. Queries and weights are two halves each, what the rounding leaves in the second: a float's 22 bits, as in
// ops/attention_split.cuh, whose order of a cache row's values in fragments is used here too. Tiles begin at multiples
// of their length and every sum has one order: a row's bits depend on its position alone, not on the chunk.
#pragma once
#include "base/async_copy.cuh"
#include "base/keep_loop.h"
#include "base/launch.cuh"
#include "base/mma.cuh"
#include "base/warp.cuh"
#include "ops/attention_chunk_geometry.h"
#include "ops/attention_score.cuh"

namespace LANE_NAMESPACE {

template <int KeyWidth, int ValuesWidth>
struct ChunkShape {
  static constexpr int kWidth = KeyWidth, kValueWidth = ValuesWidth, kThreads = 32 * kChunkWarps;
  static constexpr int kKeys = chunk_keys(kWidth, kValueWidth);  // rows of a tile
  static constexpr int kKeyPieces = (kWidth + 31) / 32;          // a lane's 16-byte pieces of a key: four lanes a row
  static constexpr int kValuePieces = (kValueWidth + 63) / 64;   // of a value: eight lanes a row
  static constexpr int kKeyStride = split_key_stride(kWidth), kValueStride = split_value_stride(kValueWidth);
  static constexpr int kStageBytes = chunk_stage_bytes(kWidth, kValueWidth);
  static_assert(attention_chunk_fits(kWidth, kValueWidth), "heads that this kernel's tiles cannot hold");
};

/// The queries of a lane: g and g + 8 of its warp's 16, see note [fragments of mma].
struct ChunkQueries {
  int row[2], head[2];         // of the chunk, and within the group
  int position[2], lowest[2];  // the cache rows that they see: [lowest, position]
  bool exists[2];

  __device__ __forceinline__ ChunkQueries(int first, int count, int heads_per_group, int start, int window) {
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      const int item = first + lane_index() / 4 + 8 * i, known = min(item, count - 1);
      exists[i] = item < count, row[i] = known / heads_per_group, head[i] = known % heads_per_group;
      position[i] = start + row[i], lowest[i] = window > 0 ? max(0, position[i] - window + 1) : 0;
    }
  }
};

/// Fragments of A with a warp's queries: piece j has two products' worth, each high and rest. In registers, or in the
/// warp's own shared memory.
template <class S>
struct ChunkFragments {
  static constexpr bool kHeld = chunk_holds_query(S::kWidth);
  static constexpr int kCount = S::kKeyPieces * 4;
  uint4 held[kHeld ? kCount : 1];
  uint4* shared;

  /// `q`: the two queries; both scaled.
  __device__ __forceinline__ void make(const float* const (&q)[2], float scale) {
    const int c = lane_index() % 4;
    LANE_UNROLL
    for (int i = 0; i < kCount / 2; i++) {
      const int column = 8 * (c + i / 2 * 4) + i % 2 * 4;
      HalfPair near[2], far[2];
      LANE_UNROLL
      for (int r = 0; r < 2; r++) {
        const float4 none = make_float4(0, 0, 0, 0);
        const float4 x = column < S::kWidth ? __ldcg(reinterpret_cast<const float4*>(q[r] + column)) : none;
        near[r] = split_to_halves(x.x * scale, x.y * scale), far[r] = split_to_halves(x.z * scale, x.w * scale);
      }
      put(2 * i, make_uint4(near[0].high, near[1].high, far[0].high, far[1].high));
      put(2 * i + 1, make_uint4(near[0].rest, near[1].rest, far[0].rest, far[1].rest));
    }
  }
  __device__ __forceinline__ void put(int i, const uint4& a) {
    if constexpr (kHeld)
      held[i] = a;
    else
      shared[i * 32 + lane_index()] = a;
  }
  __device__ __forceinline__ uint4 get(int i) const {
    if constexpr (kHeld)
      return held[i];
    else
      return shared[i * 32 + lane_index()];
  }
};

/// The tiles' way into shared memory.
template <class S>
struct ChunkTiles {
  uint8_t* stages;
  const uint8_t *keys, *values;  // the group's head in row 0 of the caches
  int64_t key_row, value_row;    // bytes of a cache row
  int begin, end;                // cache rows that the block sees

  __device__ __forceinline__ bool has(int tile) const { return begin + tile * S::kKeys < end; }
  /// `Pieces` pieces of 16 bytes of each of a tile's rows. Rows beyond the end repeat the last: their weights are 0,
  /// and what they multiply must be finite.
  template <int Pieces>
  __device__ __forceinline__ void copy_rows(uint8_t* to, int stride, const uint8_t* from, int64_t step,
                                            int first) const {
    LANE_UNROLL_4
    for (int i = threadIdx.x; i < S::kKeys * Pieces; i += S::kThreads) {
      const int row = i / Pieces, piece = i % Pieces;
      async_copy(to + row * stride + 16 * piece, from + min(first + row, end - 1) * step + 16 * piece);
    }
  }
  /// By the whole block. Each call is a group of copies, empty where no tile is left.
  __device__ __forceinline__ void copy(int tile) const {
    uint8_t* to = stages + tile % kChunkStages * S::kStageBytes;
    if (has(tile)) {
      copy_rows<S::kWidth / 8>(to, S::kKeyStride, keys, key_row, begin + tile * S::kKeys);
      copy_rows<S::kValueWidth / 8>(to + S::kKeys * S::kKeyStride, S::kValueStride, values, value_row,
                                    begin + tile * S::kKeys);
    }
    end_copy_group();
  }
  __device__ __forceinline__ void start() const {
    LANE_KEEP_LOOP
    for (int i = 0; i < kChunkStages; i++) copy(i);
  }
  /// The oldest tile on its way has arrived, for the whole block.
  __device__ __forceinline__ void wait() const {
    wait_copy_groups<kChunkStages - 1>();
    __syncthreads();
  }
};

/// A lane's part of the softmax and the sums of its two queries.
template <class S>
struct ChunkSums {
  int g, c;
  float most[2], sum[2], total[S::kValuePieces][8][4];

  /// A sink is a first score without a value.
  __device__ __forceinline__ ChunkSums(const ChunkQueries& queries, const float* sinks) {
    g = lane_index() / 4, c = lane_index() % 4;
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      most[i] = sinks ? sinks[queries.head[i]] * AttentionScore::kLog2e : -INFINITY;
      sum[i] = sinks && c == 0 ? 1.f : 0.f;
    }
    LANE_UNROLL
    for (int i = 0; i < S::kValuePieces * 32; i++) total[i / 32][i / 4 % 8][i % 4] = 0;
  }

  /// Scores with rows 8 n + 2 c and 8 n + 2 c + 1 of the tile: of query g in 0 and 1, of g + 8 in 2 and 3.
  __device__ __forceinline__ void score(const ChunkFragments<S>& query, const uint8_t* keys,
                                        float (&scores)[S::kKeys / 8][4]) const {
    LANE_UNROLL
    for (int i = 0; i < S::kKeys / 2; i++) scores[i / 4][i % 4] = 0;
    LANE_UNROLL
    for (int j = 0; j < S::kKeyPieces; j++) {
      const uint4 near = query.get(4 * j), near_rest = query.get(4 * j + 1);
      const uint4 far = query.get(4 * j + 2), far_rest = query.get(4 * j + 3);
      const int piece = min(c + 4 * j, S::kWidth / 8 - 1);  // see note [no branch at a product]
      LANE_UNROLL
      for (int n = 0; n < S::kKeys / 8; n++) {
        const uint4 key = reinterpret_cast<const uint4*>(keys + (8 * n + g) * S::kKeyStride)[piece];
        mma_half(scores[n], near, key.x, key.y);
        mma_half(scores[n], near_rest, key.x, key.y);
        mma_half(scores[n], far, key.z, key.w);
        mma_half(scores[n], far_rest, key.z, key.w);
      }
    }
  }

  /// Scores of the tile that begins at cache row `first` by the rule; minus infinity where a query sees no row.
  __device__ __forceinline__ void mask(float (&scores)[S::kKeys / 8][4], const ChunkQueries& queries, int first,
                                       const AttentionScore& rule) const {
    const bool whole = first + S::kKeys - 1 <= queries.position[0] && first >= queries.lowest[1];
    LANE_UNROLL
    for (int i = 0; i < S::kKeys / 2; i++) {
      const int r = i % 4 / 2, key = first + i / 4 * 8 + 2 * c + i % 2;
      float& score = scores[i / 4][i % 4];
      score = whole || (key <= queries.position[r] && key >= queries.lowest[r]) ? rule.of(score) : -INFINITY;
    }
  }

  /// Scores become weights; what was summed before shrinks where a greater score came.
  __device__ __forceinline__ void weigh(float (&scores)[S::kKeys / 8][4]) {
    float shrink[2];
    LANE_UNROLL
    for (int r = 0; r < 2; r++) {
      float greatest = most[r];
      LANE_UNROLL
      for (int i = 0; i < S::kKeys / 4; i++) greatest = fmaxf(greatest, scores[i / 2][2 * r + i % 2]);
      greatest = fmaxf(greatest, __shfl_xor_sync(LANE_FULL_WARP, greatest, 1));
      greatest = fmaxf(greatest, __shfl_xor_sync(LANE_FULL_WARP, greatest, 2));
      shrink[r] = greatest == -INFINITY ? 1.f : fast_exp2(most[r] - greatest);
      most[r] = greatest, sum[r] *= shrink[r];
      LANE_UNROLL
      for (int i = 0; i < S::kKeys / 4; i++) {
        float& score = scores[i / 2][2 * r + i % 2];
        score = score == -INFINITY ? 0.f : fast_exp2(score - greatest);
        sum[r] += score;
      }
    }
    LANE_UNROLL
    for (int i = 0; i < S::kValuePieces * 32; i++) total[i / 32][i / 4 % 8][i % 4] *= shrink[i % 4 / 2];
  }

  /// Adds the tile's values, 16 rows at a time; a lane's are of rows 2c, 2c + 1, 2c + 8 and 2c + 9.
  __device__ __forceinline__ void add(const float (&weights)[S::kKeys / 8][4], const uint8_t* values) {
    LANE_UNROLL
    for (int s = 0; s < S::kKeys / 16; s++) {
      HalfPair a[4];
      LANE_UNROLL
      for (int i = 0; i < 4; i++) {
        const float* w = weights[2 * s + i / 2] + i % 2 * 2;
        a[i] = split_to_halves(w[0] * kAttentionWeightScale, w[1] * kAttentionWeightScale);
      }
      add_rows(make_uint4(a[0].high, a[1].high, a[2].high, a[3].high),
               make_uint4(a[0].rest, a[1].rest, a[2].rest, a[3].rest), values + (16 * s + 2 * c) * S::kValueStride);
    }
  }
  __device__ __forceinline__ void add_rows(const uint4& high, const uint4& rest, const uint8_t* rows) {
    LANE_UNROLL
    for (int j = 0; j < S::kValuePieces; j++) {
      const int piece = min(g + 8 * j, S::kValueWidth / 8 - 1);  // others' sums are not stored
      uint32_t word[4][4];
      LANE_UNROLL
      for (int i = 0; i < 4; i++) {
        const uint4 v = reinterpret_cast<const uint4*>(rows + (i % 2 + i / 2 * 8) * S::kValueStride)[piece];
        word[i][0] = v.x, word[i][1] = v.y, word[i][2] = v.z, word[i][3] = v.w;
      }
      LANE_UNROLL
      for (int t = 0; t < 8; t++) {
        const uint32_t select = t % 2 ? 0x7632 : 0x5410;
        const uint32_t near = __byte_perm(word[0][t / 2], word[1][t / 2], select);
        const uint32_t far = __byte_perm(word[2][t / 2], word[3][t / 2], select);
        mma_half(total[j][t], high, near, far);
        mma_half(total[j][t], rest, near, far);
      }
    }
  }

  /// Query r's values: eight neighbouring columns are a lane's.
  __device__ __forceinline__ void store(float* out, int r) {
    sum[r] += __shfl_xor_sync(LANE_FULL_WARP, sum[r], 1);
    sum[r] += __shfl_xor_sync(LANE_FULL_WARP, sum[r], 2);
    if (!out) return;
    const float factor = 1.f / (sum[r] * kAttentionWeightScale);
    LANE_UNROLL
    for (int i = 0; i < S::kValuePieces * 2; i++) {
      const int j = i / 2, at = 2 * r + i % 2, column = 8 * (2 * c + i % 2 + 8 * j);
      if (column >= S::kValueWidth) continue;
      float4* to = reinterpret_cast<float4*>(out + column);
      to[0] = make_float4(total[j][0][at] * factor, total[j][1][at] * factor, total[j][2][at] * factor,
                          total[j][3][at] * factor);
      to[1] = make_float4(total[j][4][at] * factor, total[j][5][at] * factor, total[j][6][at] * factor,
                          total[j][7][at] * factor);
    }
  }
};

template <int Width, int ValueWidth>
__global__ void __launch_bounds__(32 * kChunkWarps, 2)
    attention_chunk(float* out, const float* q, const uint8_t* keys, const uint8_t* values, const float* sinks,
                    const int* pos, const int* slots, int64_t state_stride, int rows, int groups, int heads_per_group,
                    float scale, int window, float limit) {
  using S = ChunkShape<Width, ValueWidth>;
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  admit_consumer();
  await_producer();
  // The last rows see most: they begin first.
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kChunkQueries, count = rows * heads_per_group;
  const int group = static_cast<int>(blockIdx.y) % groups, sequence = static_cast<int>(blockIdx.y) / groups;
  const int start = pos[sequence], lowest = start + first / heads_per_group - window + 1;
  const int64_t slot = slots[sequence] * state_stride;
  const ChunkTiles<S> tiles{shared + kChunkWarps * chunk_query_bytes(Width),
                            keys + slot + 2 * group * Width,
                            values + slot + 2 * group * ValueWidth,
                            int64_t(2) * groups * Width,
                            int64_t(2) * groups * ValueWidth,
                            window > 0 && lowest > 0 ? lowest / S::kKeys * S::kKeys : 0,
                            start + (min(first + kChunkQueries, count) - 1) / heads_per_group + 1};
  tiles.start();

  const AttentionScore rule{scale, limit};
  const ChunkQueries queries(first + 16 * warp_index(), count, heads_per_group, start, window);
  const int64_t heads = static_cast<int64_t>(groups) * heads_per_group, token = static_cast<int64_t>(sequence) * rows;
  int64_t place[2];  // of a query among all
  LANE_UNROLL
  for (int r = 0; r < 2; r++) place[r] = (token + queries.row[r]) * heads + group * heads_per_group + queries.head[r];
  ChunkFragments<S> query;
  query.shared = reinterpret_cast<uint4*>(shared + warp_index() * chunk_query_bytes(Width));
  query.make({q + place[0] * Width, q + place[1] * Width}, rule.query_scale());
  ChunkSums<S> sums(queries, sinks ? sinks + group * heads_per_group : nullptr);
  LANE_KEEP_LOOP
  for (int tile = 0; tiles.has(tile); tile++) {
    const uint8_t* stage = tiles.stages + tile % kChunkStages * S::kStageBytes;
    tiles.wait();
    float scores[S::kKeys / 8][4];
    sums.score(query, stage, scores);
    sums.mask(scores, queries, tiles.begin + tile * S::kKeys, rule);
    sums.weigh(scores);
    sums.add(scores, stage + S::kKeys * S::kKeyStride);
    __syncthreads();
    tiles.copy(tile + kChunkStages);
  }
  LANE_UNROLL
  for (int r = 0; r < 2; r++) sums.store(queries.exists[r] ? out + place[r] * ValueWidth : nullptr, r);
}

}  // namespace LANE_NAMESPACE
