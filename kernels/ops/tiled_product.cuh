// Products of repacked matrices and the quantized vectors of several tokens, on integer tensor cores (sm_90 and up).
//
//   tiled_product<L, Columns, Words, Tokens, Tiles>(out, weights, x, bias, residual, rows, tokens, ring, partial,
//                                                   arrived)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   tiled_products<L0, L1, L2, Columns, Words, Tokens, Tiles>(out0, out1, out2, weights0, …, x0, …, bias0, …, rows0, …,
//                                                             blocks0, …, ring0, …, tokens, partial0, …, arrived)
//       up to three such products without a residual, each of its own form of the same vectors, in one launch:
//       tiled_products_geometry; of one that is not there, rows and blocks are 0
//   tiled_gated_product<L, Columns, Words, Tokens, Tiles>(out, gate, up, x, gelu, rows, tokens, ring)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a quantized repacked layout; x: the vectors n(x[t]) as quantize_vectors makes them for L's largest integer and
// for one matrix or two. bias and residual may be null. Grid, threads, shared bytes, Tokens, Tiles and ring:
// tiled_geometry; so are the floats of `partial`, which are null where its grid has one block deep. arrived: the
// vectors' counters, zero; every launch leaves zeros. The weights are read once for Tokens tokens.
//
// The bits are streamed_product's: integer sums are exact, what becomes of them is the layout's combine(), a slice's 32
// blocks are added as the tree of its lanes (partners 16, 8, 4, 2, 1 apart), and slices in their order. A warp has four
// of a slice's blocks, 8 apart, so it makes the tree's first two levels, and the sum over the eight warps the others.
//
// A stage is a slice of some of a block's rows: its bulk copies were asked for `ring` stages ago. Each warp takes its
// four blocks as tensor-core fragments from the slot, or unpacks them into bytes, a lane a row, and takes them back
// from there; it leaves its sums in shared memory, where behind a barrier each thread adds up the results that it owns.
//
// Where rows are few, several blocks share them, each with some of the slices, note [splits]: they leave the slices'
// sums in `partial`, and the last to arrive adds them in the slices' order.
//
// Dependent launches: as in ops/streamed_product.cuh.
#pragma once
#include "base/arrive.cuh"
#include "base/mma.cuh"
#include "ops/streamed_product.cuh"
#include "ops/tiled_geometry.h"

namespace LANE_NAMESPACE {

template <class L>
constexpr TiledFormat kTiledFormat = {L::kBytes256, L::kWordShares};

/// Constants of a kernel. Tiles: of 16 rows; in a gated product half of them are the gate's, half the up matrix's.
template <class Layout, int ColumnCount, int WordCount, int TokenCount, int TileCount, int MatrixCount>
struct TiledShape {
  using L = Layout;
  using Scale = typename L::Scale;
  static constexpr int kColumns = ColumnCount, kWords = WordCount, kTokens = TokenCount, kTiles = TileCount;
  static constexpr int kMatrices = MatrixCount, kGroups = kTokens / kTokenGroup;
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kRows = kTiles / kMatrices * kTileRows;  // of a matrix, at a time
  static constexpr int kSlotBytes = tiled_slot_bytes(L::kBytes256, kColumns, kTiles);
  static constexpr int kGroupBytes = token_group_bytes(kColumns, kWords);
  static constexpr int kTileScratchBytes = tile_scratch_bytes(L::kWordShares);
  static constexpr int kScratchBytes = tiled_scratch_bytes(L::kWordShares, kTiles, kTokens),
                       kScratches = kTiledWarps * kScratchBytes;
  static constexpr int kStageFloats = tiled_stage_floats(kTiles, kTokens),
                       kSumStages = tiled_sum_stages(L::kWordShares);
  static constexpr int kPartSums = kTiles * kTileRows * kTokens;
  static constexpr int kThreads = 32 * kTiledWarps,
                       kResults = kRows * kTokens;  // of a turn
  static_assert(!L::kFloat && sizeof(Scale) <= 8, "quantized weights, whose scales fit the scratch");
  static_assert(kTiles % kMatrices == 0, "a tile is of one matrix");

  static __device__ __forceinline__ int blocks(int slice) {
    return kSlices.full == kSlices.last || slice < kSlices.count - 1 ? kSlices.full : kSlices.last;
  }
  static __device__ __forceinline__ int row_bytes(int slice) { return slice_row_bytes(L::kBytes256, blocks(slice)); }
};

/// Which of a matrix's blocks this is.
struct TiledPlace {
  int block, blocks;  // of those that have its rows
  int split, splits;  // of those that share them
};
__device__ __forceinline__ TiledPlace tiled_place(int block, int blocks) {
  return {block, blocks, static_cast<int>(blockIdx.z), static_cast<int>(gridDim.z)};
}
struct TiledTask {
  const uint8_t *weights, *up, *x;
  int rows, tokens, ring;
  float* partial;  // [turns of all blocks][slices][results], or null
  int* arrived;    // of the blocks that share these rows
  TiledPlace place;
};

/// The slices of a block, the last one's end.
template <class S>
__device__ __forceinline__ int first_slice(const TiledPlace& p) {
  return p.split * S::kSlices.count / p.splits;
}
template <class S>
__device__ __forceinline__ int end_slice(const TiledPlace& p) {
  return (p.split + 1) * S::kSlices.count / p.splits;
}

/// A block's stages: a slice of its first rows, of its next rows, …, then the next slice of all of them; so a slice's
/// vectors are read once for all.
struct TiledStage {
  int slice, turn;
  __device__ __forceinline__ void advance(int turns) {
    if (++turn == turns) turn = 0, slice++;
  }
};
/// The first of a block's rows at its turn `turn`.
template <class S>
__device__ __forceinline__ int first_row(const TiledPlace& p, int turn) {
  return (p.block + turn * p.blocks) * S::kRows;
}
/// Turns of a block.
template <class S>
__device__ __forceinline__ int turns_of(const TiledPlace& p, int rows) {
  const int steps = (rows + S::kRows - 1) / S::kRows - p.block;
  return (steps + p.blocks - 1) / p.blocks;
}

/// Asks for a stage's rows, each warp for some: a copy takes its thread long enough that one warp's asking for all
/// would hold up the others.
template <class S>
__device__ __forceinline__ void copy_stage(const TiledTask& task, TiledStage stage, uint8_t* slot,
                                           CopyBarrier* barrier) {
  if (stage.slice >= end_slice<S>(task.place)) return;
  const int bytes = S::row_bytes(stage.slice), first = first_row<S>(task.place, stage.turn),
            there = min(S::kRows, task.rows - first);
  if (threadIdx.x == 0) expect_copies(barrier, static_cast<uint32_t>(there * S::kMatrices * bytes));
  constexpr int kOfWarp = S::kTiles * kTileRows / kTiledWarps;
  const int lane = threadIdx.x & 31, slot_row = (threadIdx.x >> 5) * kOfWarp + lane;
  const int matrix = slot_row / S::kRows, row = slot_row % S::kRows;
  if (lane >= kOfWarp || row >= there) return;
  const uint8_t* source = (matrix ? task.up : task.weights) +
                          slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, stage.slice) +
                          static_cast<size_t>(first + row) * static_cast<size_t>(bytes);
  bulk_copy(slot + slot_row * tiled_row_stride(bytes), source, static_cast<uint32_t>(bytes), barrier);
}

/// Where the copies of a block's stages stand.
template <class S>
struct TiledCopies {
  uint8_t* slots;
  CopyBarrier* barriers;
  int ring, turns, slot;
  TiledStage next;

  __device__ __forceinline__ void ask(const TiledTask& task) {
    copy_stage<S>(task, next, slots + slot * S::kSlotBytes, barriers + slot);
    next.advance(turns);
    if (++slot == ring) slot = 0;
  }
  /// The first ones, one a slot.
  __device__ __forceinline__ void start(const TiledTask& task) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < ring; i++) init_copy_barrier(barriers + i);
      publish_copy_barriers();
    }
    __syncthreads();
    LANE_KEEP_LOOP
    for (int i = 0; i < ring; i++) ask(task);
    __syncthreads();
  }
};

/// A lane's share of four blocks of the vectors: token (lane / 4) of each group; and some of their pairs, scale and sum
/// of a token, which the warp keeps in shared memory: [4 blocks][groups][4] of two tokens.
template <class S>
struct VectorFragments {
  static constexpr int kPairs = 4 * S::kGroups * 4, kOwnPairs = (kPairs + 31) / 32;
  uint32_t words[4][S::kGroups][2 * S::kWords];
  float4 pairs[kOwnPairs];

  __device__ __forceinline__ void store_pairs(float4* to, int lane) const {
    LANE_UNROLL
    for (int i = 0; i < kOwnPairs; i++)
      if (lane + 32 * i < kPairs) to[lane + 32 * i] = pairs[i];
  }
};
/// Blocks behind the slice's end are its last again, with activations of zeros.
template <class S>
__device__ __forceinline__ void load_vectors(VectorFragments<S>& v, const uint8_t* x, int slice, int part, int lane) {
  constexpr int kBlocks = S::kColumns / kBlockColumns;
  const int blocks = S::blocks(slice), first = slice * S::kSlices.full;
  LANE_UNROLL
  for (int leaf = 0; leaf < 4; leaf++) {
    const int at = first + min(part + kTiledParts * leaf, blocks - 1);
    LANE_UNROLL
    for (int group = 0; group < S::kGroups; group++) {
      const uint8_t* from = x + group * S::kGroupBytes;
      const auto* words = reinterpret_cast<const uint2*>(from + at * (kTokenGroup * 32 * S::kWords)) + lane * S::kWords;
      if constexpr (S::kWords == 2) {
        const uint4 w = __ldcg(reinterpret_cast<const uint4*>(words));
        v.words[leaf][group][0] = w.x, v.words[leaf][group][1] = w.y;
        v.words[leaf][group][2] = w.z, v.words[leaf][group][3] = w.w;
      } else {
        const uint2 w = __ldcg(words);
        v.words[leaf][group][0] = w.x, v.words[leaf][group][1] = w.y;
      }
    }
  }
  LANE_UNROLL
  for (int i = 0; i < v.kOwnPairs; i++) {
    const int pair = lane + 32 * i, group = pair / 4 % S::kGroups, block = part + kTiledParts * (pair / 4 / S::kGroups);
    const uint8_t* from = x + group * S::kGroupBytes + kBlocks * (kTokenGroup * 32 * S::kWords) +
                          (first + min(block, blocks - 1)) * (kTokenGroup * 8);
    v.pairs[i] = block < blocks && pair < v.kPairs ? __ldcg(reinterpret_cast<const float4*>(from) + pair % 4)
                                                   : make_float4(0, 0, 0, 0);
  }
}

/// Where a row's scale lies among a warp's of a tile: those of blocks 16 apart are neighbours, for one load.
__device__ __forceinline__ int scale_place(int leaf, int row) { return (leaf % 2 * kTileRows + row) * 2 + leaf / 2; }

/// Two of a warp's four blocks of a tile, as lane l has them: of row l % 16. Codes only where a lane of a tensor core
/// does not take them from the slot.
template <class S>
struct UnpackedRow {
  uint32_t codes[2][8];
  typename S::Scale scales[2];

  static __device__ __forceinline__ int leaf(int i, int lane) { return 2 * i + (lane >> 4); }
  __device__ __forceinline__ void read(const uint8_t* tile, int slice, int part, int lane) {
    const int blocks = S::blocks(slice);
    const uint8_t* packed = tile + (lane & 15) * tiled_row_stride(S::row_bytes(slice));
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      const int block = min(part + kTiledParts * leaf(i, lane), blocks - 1);
      if constexpr (!S::L::kWordShares) S::L::codes(packed, blocks, block, codes[i]);
      scales[i] = S::L::scale_by_rows(packed, blocks, block);
    }
  }
  /// As bytes and scales.
  __device__ __forceinline__ void write(uint8_t* scratch, int lane) const {
    const int row = lane & 15;
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      if constexpr (!S::L::kWordShares) {
        const uint32_t(&w)[8] = codes[i];
        uint8_t* to = scratch + kTiledScaleBytes + leaf(i, lane) * (kTileRows * kBlockColumns) + row * 16;
        store_as(to, make_uint4(w[0], w[1], w[2], w[3]));
        store_as(to + kTileRows * 16, make_uint4(w[4], w[5], w[6], w[7]));
      }
      auto* to_scales = reinterpret_cast<typename S::Scale*>(scratch);
      to_scales[scale_place(leaf(i, lane), row)] = scales[i];
    }
  }
};

/// A tile of a warp: where its packed rows are, and what was unpacked of them.
template <class S>
struct WarpTile {
  const uint8_t *packed, *scratch;
  int slice, part, lane;

  /// Block `leaf` of the warp's four as a tensor core takes it.
  __device__ __forceinline__ uint4 fragment(int leaf) const {
    if constexpr (S::L::kWordShares) {
      const int blocks = S::blocks(slice), block = min(part + kTiledParts * leaf, blocks - 1);
      const int stride = tiled_row_stride(S::row_bytes(slice));
      const uint8_t* row = packed + lane / 4 * stride;
      const uint2 upper = S::L::share(row, blocks, block, lane % 4),
                  lower = S::L::share(row + 8 * stride, blocks, block, lane % 4);
      return make_uint4(upper.x, lower.x, upper.y, lower.y);
    } else {
      return load_fragment(scratch + kTiledScaleBytes + leaf * (kTileRows * kBlockColumns));
    }
  }
  /// Of blocks `leaf` and leaf + 2, of the lane's two rows.
  __device__ __forceinline__ void read_scales(int leaf, typename S::Scale (&scales)[2][2]) const {
    using Scale = typename S::Scale;
    struct alignas(2 * sizeof(Scale)) Pair {
      Scale of[2];
    };
    const auto* all = reinterpret_cast<const Scale*>(scratch);
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      const Pair pair = *reinterpret_cast<const Pair*>(all + scale_place(leaf, lane / 4 + 8 * i));
      scales[0][i] = pair.of[0], scales[1][i] = pair.of[1];
    }
  }
};

/// A lane's sums of one block: rows (lane / 4) and 8 below of tokens 2c and 2c + 1 of each group.
template <class S>
struct BlockSums {
  float of[S::kGroups][4];
};

template <class S>
__device__ __forceinline__ BlockSums<S> block_sums(const WarpTile<S>& tile, const VectorFragments<S>& v,
                                                   const float4* pairs, int leaf, const typename S::Scale (&scale)[2]) {
  using L = typename S::L;
  const uint4 a = tile.fragment(leaf);
  BlockSums<S> sums;
  LANE_UNROLL
  for (int group = 0; group < S::kGroups; group++) {
    int integers[S::kWords][L::kParts][4] = {};
    LANE_UNROLL
    for (int word = 0; word < S::kWords; word++) {
      const uint32_t* b = v.words[leaf][group] + 2 * word;
      if constexpr (L::kParts == 1) {
        mma_int8(integers[word][0], a, b[0], b[1]);
      } else {
        mma_int8(integers[word][0], a.x, a.y, b[0]);
        mma_int8(integers[word][1], a.z, a.w, b[1]);
      }
    }
    const float4 pair = pairs[(leaf * S::kGroups + group) * 4 + tile.lane % 4];
    LANE_UNROLL
    for (int i = 0; i < 4; i++) {
      int total[L::kParts];
      LANE_UNROLL
      for (int part = 0; part < L::kParts; part++)
        total[part] =
            S::kWords == 2 ? integers[0][part][i] * 256 + integers[S::kWords - 1][part][i] : integers[0][part][i];
      sums.of[group][i] = L::combine(0.f, scale[i / 2], total, i % 2 ? pair.z : pair.x, i % 2 ? pair.w : pair.y);
    }
  }
  return sums;
}

/// Never contracted with what made the terms.
template <class S>
__device__ __forceinline__ BlockSums<S> operator+(BlockSums<S> a, const BlockSums<S>& b) {
  LANE_UNROLL
  for (int group = 0; group < S::kGroups; group++) {
    LANE_UNROLL
    for (int i = 0; i < 4; i++) a.of[group][i] = __fadd_rn(a.of[group][i], b.of[group][i]);
  }
  return a;
}

/// A tile's sums over the warp's four blocks.
template <class S>
__device__ __forceinline__ BlockSums<S> part_sums(const WarpTile<S>& tile, const VectorFragments<S>& v,
                                                  const float4* pairs) {
  // Blocks 16 apart, then 8.
  BlockSums<S> sums[2];
  LANE_UNROLL
  for (int leaf = 0; leaf < 2; leaf++) {
    typename S::Scale scales[2][2];
    tile.read_scales(leaf, scales);
    sums[leaf] = block_sums<S>(tile, v, pairs, leaf, scales[0]) + block_sums<S>(tile, v, pairs, leaf + 2, scales[1]);
  }
  return sums[0] + sums[1];
}
/// To [group][16 rows][8 tokens].
template <class S>
__device__ __forceinline__ void store_part(float* sums, const BlockSums<S>& sum, int lane) {
  float* own = sums + lane / 4 * kTokenGroup + lane % 4 * 2;
  LANE_UNROLL
  for (int group = 0; group < S::kGroups; group++, own += kTileRows * kTokenGroup) {
    *reinterpret_cast<float2*>(own) = make_float2(sum.of[group][0], sum.of[group][1]);
    *reinterpret_cast<float2*>(own + 8 * kTokenGroup) = make_float2(sum.of[group][2], sum.of[group][3]);
  }
}

/// The sum of a slice's parts, 4, 2 and 1 apart.
template <class S>
__device__ __forceinline__ float sum_parts(const float* sums) {
  float p[kTiledParts];
  LANE_UNROLL
  for (int part = 0; part < kTiledParts; part++) p[part] = sums[part * S::kPartSums];
  return __fadd_rn(__fadd_rn(__fadd_rn(p[0], p[4]), __fadd_rn(p[2], p[6])),
                   __fadd_rn(__fadd_rn(p[1], p[5]), __fadd_rn(p[3], p[7])));
}

/// Result `index` of a turn's rows, a total of each matrix, lies as the sums do: [tile][group][16 rows][8 tokens].
template <class S>
__device__ __forceinline__ void store_result(const TiledTask& task, const StreamedResult& result, int first, int index,
                                             const float (&totals)[S::kMatrices]) {
  constexpr int kOfTile = kTileRows * S::kTokens;
  const int group = index % kOfTile / (kTileRows * kTokenGroup), in_group = index % kTokenGroup;
  const int row = first + index / kOfTile * kTileRows + index / kTokenGroup % kTileRows;
  const int group_token = static_cast<int>(blockIdx.y) * S::kTokens + group * kTokenGroup;
  if (row >= task.rows || group_token + in_group >= task.tokens) return;
  const uint8_t* group_end = task.x + static_cast<int64_t>(group_token / kTokenGroup + 1) * S::kGroupBytes;
  const float factor = __ldcg(reinterpret_cast<const float*>(group_end) - kTokenGroup + in_group);
  float v = __fmul_rn(totals[0], factor);
  if (S::kMatrices == 2) v = __fmul_rn(gate_activation(v, result.gelu), __fmul_rn(totals[S::kMatrices - 1], factor));
  const int64_t place = static_cast<int64_t>(group_token + in_group) * task.rows + row;
  if (result.bias) v += __ldg(result.bias + row);
  if (result.residual) v += __ldcg(result.residual + place);
  result.out[place] = v;
}

/// Where the sums of a slice of a turn's rows go, those of all slices, and of all turns of all blocks.
template <class S>
__device__ __forceinline__ float* partial_sums(const TiledTask& task, TiledStage stage) {
  const int step = task.place.block + stage.turn * task.place.blocks;
  return task.partial + (static_cast<int64_t>(step) * S::kSlices.count + stage.slice) * S::kPartSums;
}

/// A stage's result `at`, added to the totals of its turn and stored after the last slice.
template <class S>
__device__ __forceinline__ void add_result(const TiledTask& task, const StreamedResult& result, TiledStage stage,
                                           int at, const float* sums, float* all_totals) {
  float totals[S::kMatrices];
  LANE_UNROLL
  for (int m = 0; m < S::kMatrices; m++) {
    float& total = all_totals[stage.turn * S::kPartSums + m * S::kResults + at];
    totals[m] = total = __fadd_rn(stage.slice ? total : 0.f, sum_parts<S>(sums + m * S::kResults + at));
  }
  if (stage.slice == S::kSlices.count - 1)
    store_result<S>(task, result, first_row<S>(task.place, stage.turn), at, totals);
}
/// Adds a stage's sums up, each thread those of the results that it owns; or leaves them to who has all slices'.
template <class S>
__device__ __forceinline__ void add_stage(const TiledTask& task, const StreamedResult& result, TiledStage stage,
                                          const float* sums, float* all_totals) {
  LANE_UNROLL
  for (int i = 0; i < S::kResults; i += S::kThreads) {
    const int at = static_cast<int>(threadIdx.x) + i;
    if (at >= S::kResults) continue;
    if (S::kMatrices == 2 || task.place.splits == 1)
      add_result<S>(task, result, stage, at, sums, all_totals);
    else
      partial_sums<S>(task, stage)[at] = sum_parts<S>(sums + at);
  }
}
/// By the last of the blocks that share rows: adds the slices' sums.
template <class S>
__device__ __forceinline__ void add_partial_sums(const TiledTask& task, const StreamedResult& result, int turns) {
  LANE_KEEP_LOOP
  for (int turn = 0; turn < turns; turn++) {
    const float* sums = partial_sums<S>(task, {0, turn});
    LANE_UNROLL
    for (int at = static_cast<int>(threadIdx.x); at < S::kResults; at += S::kThreads) {
      float total[1] = {};
      LANE_UNROLL
      for (int slice = 0; slice < S::kSlices.count; slice++)
        total[0] = __fadd_rn(total[0], __ldcg(sums + slice * S::kPartSums + at));
      store_result<S>(task, result, first_row<S>(task.place, turn), at, total);
    }
  }
}

/// The warp's part of a stage that has arrived, for the block to add up behind a barrier. All is read before anything
/// is written, for all tiles at once: a read behind a write would wait for it.
template <class S>
__device__ __forceinline__ void work_on_stage(const uint8_t* slot, int slice, const VectorFragments<S>& v, float* sums,
                                              uint8_t* scratch, int part, int lane) {
  auto* pairs = reinterpret_cast<float4*>(scratch + S::kTiles * S::kTileScratchBytes);
  const auto packed = [&](int tile) { return slot + tile * kTileRows * tiled_row_stride(S::row_bytes(slice)); };
  UnpackedRow<S> rows[S::kTiles];
  LANE_UNROLL
  for (int tile = 0; tile < S::kTiles; tile++) rows[tile].read(packed(tile), slice, part, lane);
  LANE_UNROLL
  for (int tile = 0; tile < S::kTiles; tile++) rows[tile].write(scratch + tile * S::kTileScratchBytes, lane);
  v.store_pairs(pairs, lane);
  __syncwarp();
  BlockSums<S> made[S::kTiles];
  const auto store = [&](int tile) {
    store_part<S>(sums + part * S::kPartSums + tile * kTileRows * S::kTokens, made[tile], lane);
  };
  LANE_UNROLL
  for (int tile = 0; tile < S::kTiles; tile++) {
    made[tile] =
        part_sums<S>(WarpTile<S>{packed(tile), scratch + tile * S::kTileScratchBytes, slice, part, lane}, v, pairs);
    if (S::kSumStages > 1) store(tile);
  }
  if (S::kSumStages > 1) return;
  __syncthreads();  // the stage before has been added up
  LANE_UNROLL
  for (int tile = 0; tile < S::kTiles; tile++) store(tile);
}

template <class S>
__device__ __forceinline__ void tiled_block(const TiledTask& task, const StreamedResult& result) {
  __shared__ CopyBarrier barriers[kTiledMaxRing];
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, turns = turns_of<S>(task.place, task.rows);
  const int first = first_slice<S>(task.place), end = end_slice<S>(task.place);
  uint8_t* scratches = shared + task.ring * S::kSlotBytes;
  auto* sums = reinterpret_cast<float*>(scratches + S::kScratches);
  float* totals = sums + S::kSumStages * S::kStageFloats;
  TiledCopies<S> copies{shared, barriers, task.ring, turns, 0, {first, 0}};
  copies.start(task);
  await_producer();

  const uint8_t* x = task.x + static_cast<int64_t>(blockIdx.y) * S::kGroups * S::kGroupBytes;
  VectorFragments<S> v;
  load_vectors<S>(v, x, first, warp, lane);
  int slot = 0, sum_stage = 0;
  uint32_t parity = 0;
  LANE_KEEP_LOOP
  for (TiledStage stage{first, 0}; stage.slice < end; stage.advance(turns)) {
    wait_copy(barriers + slot, parity);
    float* stage_sums = sums + sum_stage * S::kStageFloats;
    work_on_stage<S>(shared + slot * S::kSlotBytes, stage.slice, v, stage_sums, scratches + warp * S::kScratchBytes,
                     warp, lane);
    // The next slice's vectors are on their way while the block meets and adds.
    if (stage.turn == turns - 1 && stage.slice < end - 1) load_vectors<S>(v, x, stage.slice + 1, warp, lane);
    __syncthreads();
    copies.ask(task);
    add_stage<S>(task, result, stage, stage_sums, totals);
    if (++sum_stage == S::kSumStages) sum_stage = 0;
    if (task.ring == 1) __syncthreads();  // portable copies are there when all warps have made theirs
    if (++slot == task.ring) slot = 0, parity ^= 1;
  }
  if constexpr (S::kMatrices == 1) {
    if (task.place.splits > 1 && arrives_last(task.arrived, task.place.splits))
      add_partial_sums<S>(task, result, turns);
  }
}

constexpr int tiled_resident_blocks(int tokens) { return tokens <= 16 ? 2 : 1; }

template <class L, int Columns, int Words, int Tokens, int Tiles>
__global__ __launch_bounds__(32 * kTiledWarps, tiled_resident_blocks(Tokens)) void tiled_product(
    float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows,
    int tokens, int ring, float* partial, int* arrived) {
  admit_consumer();
  tiled_block<TiledShape<L, Columns, Words, Tokens, Tiles, 1>>(
      {weights, nullptr, x, rows, tokens, ring, partial, arrived + blockIdx.x, tiled_place(blockIdx.x, gridDim.x)},
      {out, bias, residual, 0});
}

template <class L, int Columns, int Words, int Tokens, int Tiles>
__global__ __launch_bounds__(32 * kTiledWarps, tiled_resident_blocks(Tokens)) void tiled_gated_product(
    float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens, int ring) {
  admit_consumer();
  tiled_block<TiledShape<L, Columns, Words, Tokens, Tiles, 2>>(
      {gate, up, x, rows, tokens, ring, nullptr, nullptr, tiled_place(blockIdx.x, gridDim.x)},
      {out, nullptr, nullptr, gelu});
}

/// One of the matrices whose blocks follow each other in a grid; one left out has no blocks.
struct TiledPart {
  float* out;
  const uint8_t *weights, *x;
  const float* bias;
  float* partial;
  int rows, blocks, ring;
};
/// Block `block` of a part's.
template <class L, int Columns, int Words, int Tokens, int Tiles>
__device__ __forceinline__ void tiled_part_block(const TiledPart& p, int block, int tokens, int* arrived) {
  tiled_block<TiledShape<L, Columns, Words, Tokens, Tiles, 1>>(
      {p.weights, nullptr, p.x, p.rows, tokens, p.ring, p.partial, arrived + blockIdx.x, tiled_place(block, p.blocks)},
      {p.out, p.bias, nullptr, 0});
}

template <class L0, class L1, class L2, int Columns, int Words, int Tokens, int Tiles>
__global__ __launch_bounds__(32 * kTiledWarps, tiled_resident_blocks(Tokens)) void tiled_products(
    float* out0, float* out1, float* out2, const uint8_t* weights0, const uint8_t* weights1, const uint8_t* weights2,
    const uint8_t* x0, const uint8_t* x1, const uint8_t* x2, const float* bias0, const float* bias1, const float* bias2,
    int rows0, int rows1, int rows2, int blocks0, int blocks1, int blocks2, int ring0, int ring1, int ring2, int tokens,
    float* partial0, float* partial1, float* partial2, int* arrived) {
  admit_consumer();
  const TiledPart part0{out0, weights0, x0, bias0, partial0, rows0, blocks0, ring0},
      part1{out1, weights1, x1, bias1, partial1, rows1, blocks1, ring1},
      part2{out2, weights2, x2, bias2, partial2, rows2, blocks2, ring2};
  int block = static_cast<int>(blockIdx.x);
  const int which = block < blocks0 ? 0 : block < blocks0 + blocks1 ? 1 : 2;
  block -= which == 0 ? 0 : which == 1 ? blocks0 : blocks0 + blocks1;
  const TiledPart& part = which == 0 ? part0 : which == 1 ? part1 : part2;
  // Parts of one layout are one piece of code.
  constexpr bool k01 = kSameLayout<L0, L1>, k02 = kSameLayout<L0, L2>, k12 = kSameLayout<L1, L2>;
  const bool first = which == 0 || (k01 && which == 1) || (k02 && which == 2);
  if constexpr (k01 && k02) {
    tiled_part_block<L0, Columns, Words, Tokens, Tiles>(part, block, tokens, arrived);
  } else if (first) {
    tiled_part_block<L0, Columns, Words, Tokens, Tiles>(part, block, tokens, arrived);
  } else if constexpr (k01) {
    tiled_part_block<L2, Columns, Words, Tokens, Tiles>(part, block, tokens, arrived);
  } else if constexpr (k02 || k12) {
    tiled_part_block<L1, Columns, Words, Tokens, Tiles>(part, block, tokens, arrived);
  } else {
    if (which == 1)
      tiled_part_block<L1, Columns, Words, Tokens, Tiles>(part, block, tokens, arrived);
    else
      tiled_part_block<L2, Columns, Words, Tokens, Tiles>(part, block, tokens, arrived);
  }
}

}  // namespace LANE_NAMESPACE
