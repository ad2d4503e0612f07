// Products of repacked matrices and the quantized vectors of several tokens, on integer tensor cores (sm_90 and up).
//
//   tiled_product<L, Columns, Words, Tokens, Tiles>(out, weights, x, bias, residual, rows, tokens, ring)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   tiled_gated_product<L, Columns, Words, Tokens, Tiles>(out, gate, up, x, gelu, rows, tokens, ring)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a quantized repacked layout; x: the vectors n(x[t]) as quantize_vectors makes them for L's largest integer and
// for one matrix or two. bias and residual may be null. Grid, threads, shared bytes, Tokens, Tiles and ring:
// tiled_geometry. The weights are read once for Tokens tokens.
//
// The bits are streamed_product's: integer sums are exact, what becomes of them is the layout's combine(), a slice's 32
// blocks are added as the tree of its lanes (partners 16, 8, 4, 2, 1 apart), and slices in their order. A warp has four
// of a slice's blocks, 8 apart, so it makes the tree's first two levels, and the sum over the eight warps the others.
//
// A stage is a slice of some of a block's rows: its bulk copies were asked for `ring` stages ago. Each warp unpacks its
// four blocks into bytes, a lane a row, takes them back as tensor-core fragments, and leaves its sums in shared memory,
// where after the stage's one barrier each thread adds up the results that it owns.
//
// Dependent launches: as in ops/streamed_product.cuh.
#pragma once
#include "base/mma.cuh"
#include "ops/streamed_product.cuh"
#include "ops/tiled_geometry.h"

namespace LANE_NAMESPACE {

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
  static constexpr int kPartSums = kTiles * kTileRows * kTokens;
  static constexpr int kThreads = 32 * kTiledWarps,
                       kResults = kRows * kTokens;  // of a turn
  static_assert(!L::kFloat && sizeof(Scale) <= 8, "quantized weights, whose scales fit the scratch");
  static_assert(kTiles * kTileRows <= 32 && kTiles % kMatrices == 0, "a lane copies a row");

  static __device__ __forceinline__ int blocks(int slice) {
    return kSlices.full == kSlices.last || slice < kSlices.count - 1 ? kSlices.full : kSlices.last;
  }
  static __device__ __forceinline__ int row_bytes(int slice) { return slice_row_bytes(L::kBytes256, blocks(slice)); }
};

struct TiledTask {
  const uint8_t *weights, *up, *x;
  int rows, tokens, ring;
};

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
__device__ __forceinline__ int first_row(int turn) {
  return (static_cast<int>(blockIdx.x) + turn * static_cast<int>(gridDim.x)) * S::kRows;
}
/// Turns of this block.
template <class S>
__device__ __forceinline__ int turns_of(int rows) {
  const int steps = (rows + S::kRows - 1) / S::kRows - static_cast<int>(blockIdx.x);
  return (steps + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
}

/// Asks for a stage's rows, each warp for some: a copy takes its thread long enough that one warp's asking for all
/// would hold up the others.
template <class S>
__device__ __forceinline__ void copy_stage(const TiledTask& task, TiledStage stage, uint8_t* slot,
                                           CopyBarrier* barrier) {
  if (stage.slice >= S::kSlices.count) return;
  const int bytes = S::row_bytes(stage.slice), first = first_row<S>(stage.turn),
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

/// A lane's share of four blocks of the vectors: token (lane / 4) of a group in `words`, tokens 2c and 2c + 1 (c = lane
/// % 4) in `pairs`: scale and sum of each.
template <class S>
struct VectorFragments {
  uint32_t words[4][S::kGroups][2 * S::kWords];
  float4 pairs[4][S::kGroups];
};
/// Blocks behind the slice's end are its last again, with activations of zeros.
template <class S>
__device__ __forceinline__ void load_vectors(VectorFragments<S>& v, const uint8_t* x, int slice, int part, int lane) {
  constexpr int kBlocks = S::kColumns / kBlockColumns;
  const int blocks = S::blocks(slice);
  LANE_UNROLL
  for (int leaf = 0; leaf < 4; leaf++) {
    const int block = part + kTiledParts * leaf, at = slice * S::kSlices.full + min(block, blocks - 1);
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
      const uint8_t* pairs = from + kBlocks * (kTokenGroup * 32 * S::kWords) + at * (kTokenGroup * 8);
      v.pairs[leaf][group] =
          block < blocks ? __ldcg(reinterpret_cast<const float4*>(pairs) + lane % 4) : make_float4(0, 0, 0, 0);
    }
  }
}

/// A warp's four blocks of a tile, as bytes and scales: lane l unpacks row l % 16 of two of them.
template <class S>
__device__ __forceinline__ void unpack_blocks(uint8_t* scratch, const uint8_t* tile, int slice, int part, int lane) {
  const int blocks = S::blocks(slice), row = lane & 15;
  const uint8_t* packed = tile + row * tiled_row_stride(S::row_bytes(slice));
  LANE_UNROLL
  for (int i = 0; i < 2; i++) {
    const int leaf = 2 * i + (lane >> 4), block = min(part + kTiledParts * leaf, blocks - 1);
    uint32_t w[8];
    S::L::codes(packed, blocks, block, w);
    uint8_t* to = scratch + leaf * (kTileRows * kBlockColumns) + row * 16;
    store_as(to, make_uint4(w[0], w[1], w[2], w[3]));
    store_as(to + kTileRows * 16, make_uint4(w[4], w[5], w[6], w[7]));
    auto* scales = reinterpret_cast<typename S::Scale*>(scratch + 4 * kTileRows * kBlockColumns);
    scales[leaf * kTileRows + row] = S::L::scale(packed, blocks, block);
  }
}

/// A lane's sums of one block: rows (lane / 4) and 8 below of tokens 2c and 2c + 1 of each group.
template <class S>
struct BlockSums {
  float of[S::kGroups][4];
};

template <class S>
__device__ __forceinline__ BlockSums<S> block_sums(const uint8_t* scratch, const VectorFragments<S>& v, int leaf,
                                                   int lane) {
  using L = typename S::L;
  const uint4 a = load_fragment(scratch + leaf * (kTileRows * kBlockColumns));
  const auto* scales =
      reinterpret_cast<const typename S::Scale*>(scratch + 4 * kTileRows * kBlockColumns) + leaf * kTileRows + lane / 4;
  const typename S::Scale scale[2] = {scales[0], scales[8]};
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
    const float4 pair = v.pairs[leaf][group];
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

/// One tile's sums over the warp's four blocks: [group][16 rows][8 tokens].
template <class S>
__device__ __forceinline__ void store_part(float* sums, const uint8_t* scratch, const VectorFragments<S>& v, int lane) {
  // Blocks 16 apart, then 8.
  const BlockSums<S> even = block_sums<S>(scratch, v, 0, lane) + block_sums<S>(scratch, v, 2, lane);
  const BlockSums<S> odd = block_sums<S>(scratch, v, 1, lane) + block_sums<S>(scratch, v, 3, lane);
  const BlockSums<S> sum = even + odd;
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

/// Result `index` of a turn's rows lies as the sums do: [tile][group][16 rows][8 tokens].
template <class S>
__device__ __forceinline__ void store_result(const TiledTask& task, const StreamedResult& result, int first, int index,
                                             const float* totals) {
  constexpr int kOfTile = kTileRows * S::kTokens;
  const int group = index % kOfTile / (kTileRows * kTokenGroup), in_group = index % kTokenGroup;
  const int row = first + index / kOfTile * kTileRows + index / kTokenGroup % kTileRows;
  const int group_token = static_cast<int>(blockIdx.y) * S::kTokens + group * kTokenGroup;
  if (row >= task.rows || group_token + in_group >= task.tokens) return;
  const uint8_t* group_end = task.x + static_cast<int64_t>(group_token / kTokenGroup + 1) * S::kGroupBytes;
  const float factor = __ldcg(reinterpret_cast<const float*>(group_end) - kTokenGroup + in_group);
  float v = __fmul_rn(totals[0], factor);
  if (S::kMatrices == 2) v = __fmul_rn(gate_activation(v, result.gelu), __fmul_rn(totals[S::kResults], factor));
  const int64_t place = static_cast<int64_t>(group_token + in_group) * task.rows + row;
  if (result.bias) v += __ldg(result.bias + row);
  if (result.residual) v += __ldcg(result.residual + place);
  result.out[place] = v;
}

/// Adds a stage's sums to the totals of its turn, each thread to those that it owns, and stores them after the last
/// slice.
template <class S>
__device__ __forceinline__ void add_stage(const TiledTask& task, const StreamedResult& result, TiledStage stage,
                                          const float* sums, float* totals) {
  LANE_UNROLL
  for (int i = 0; i < S::kResults; i += S::kThreads) {
    const int at = static_cast<int>(threadIdx.x) + i;
    if (at >= S::kResults) continue;
    LANE_UNROLL
    for (int m = 0; m < S::kMatrices; m++) {
      float& total = totals[m * S::kResults + at];
      total = __fadd_rn(stage.slice ? total : 0.f, sum_parts<S>(sums + m * S::kResults + at));
    }
    if (stage.slice == S::kSlices.count - 1) store_result<S>(task, result, first_row<S>(stage.turn), at, totals + at);
  }
}

/// The warp's part of a stage that has arrived.
template <class S>
__device__ __forceinline__ void work_on_stage(const uint8_t* slot, int slice, const VectorFragments<S>& v, float* sums,
                                              uint8_t* scratch, int part, int lane) {
  constexpr int kTileSums = kTileRows * S::kTokens;
  LANE_UNROLL
  for (int tile = 0; tile < S::kTiles; tile++) {
    const uint8_t* packed = slot + tile * kTileRows * tiled_row_stride(S::row_bytes(slice));
    unpack_blocks<S>(scratch, packed, slice, part, lane);
    __syncwarp();
    store_part<S>(sums + part * S::kPartSums + tile * kTileSums, scratch, v, lane);
    __syncwarp();
  }
}

template <class S>
__device__ __forceinline__ void tiled_block(const TiledTask& task, const StreamedResult& result) {
  __shared__ CopyBarrier barriers[kTiledMaxRing];
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, turns = turns_of<S>(task.rows);
  uint8_t* scratches = shared + task.ring * S::kSlotBytes;
  auto* sums = reinterpret_cast<float*>(scratches + kTiledWarps * kTiledScratchBytes);
  float* totals = sums + 2 * kTiledParts * S::kPartSums;
  TiledCopies<S> copies{shared, barriers, task.ring, turns, 0, {0, 0}};
  copies.start(task);
  await_producer();

  const uint8_t* x = task.x + static_cast<int64_t>(blockIdx.y) * S::kGroups * S::kGroupBytes;
  VectorFragments<S> v;
  load_vectors<S>(v, x, 0, warp, lane);
  int slot = 0;
  uint32_t parity = 0, odd = 0;
  LANE_KEEP_LOOP
  for (TiledStage stage{0, 0}; stage.slice < S::kSlices.count; stage.advance(turns), odd ^= 1) {
    wait_copy(barriers + slot, parity);
    float* stage_sums = sums + odd * kTiledParts * S::kPartSums;
    work_on_stage<S>(shared + slot * S::kSlotBytes, stage.slice, v, stage_sums, scratches + warp * kTiledScratchBytes,
                     warp, lane);
    // The next slice's vectors are on their way while the block meets and adds.
    if (stage.turn == turns - 1 && stage.slice < S::kSlices.count - 1)
      load_vectors<S>(v, x, stage.slice + 1, warp, lane);
    __syncthreads();
    copies.ask(task);
    add_stage<S>(task, result, stage, stage_sums, totals + stage.turn * S::kPartSums);
    if (task.ring == 1) __syncthreads();  // portable copies are there when all warps have made theirs
    if (++slot == task.ring) slot = 0, parity ^= 1;
  }
}

constexpr int tiled_resident_blocks(int tokens) { return tokens <= 16 ? 2 : 1; }

template <class L, int Columns, int Words, int Tokens, int Tiles>
__global__ __launch_bounds__(32 * kTiledWarps,
                             tiled_resident_blocks(Tokens)) void tiled_product(float* out, const uint8_t* weights,
                                                                               const uint8_t* x, const float* bias,
                                                                               const float* residual, int rows,
                                                                               int tokens, int ring) {
  admit_consumer();
  tiled_block<TiledShape<L, Columns, Words, Tokens, Tiles, 1>>({weights, nullptr, x, rows, tokens, ring},
                                                               {out, bias, residual, 0});
}

template <class L, int Columns, int Words, int Tokens, int Tiles>
__global__ __launch_bounds__(32 * kTiledWarps, tiled_resident_blocks(Tokens)) void tiled_gated_product(
    float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens, int ring) {
  admit_consumer();
  tiled_block<TiledShape<L, Columns, Words, Tokens, Tiles, 2>>({gate, up, x, rows, tokens, ring},
                                                               {out, nullptr, nullptr, gelu});
}

}  // namespace LANE_NAMESPACE
