// Products of float weights and a chunk's tokens, on the tensor cores of sm_80 and up:
//
//   mma_product<L, Columns, Rows, Tokens>(out, weights, x, bias, residual, rows, tokens)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   mma_gated_product<L, Columns, Rows, Tokens>(out, gate, up, x, gelu, rows, tokens)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a float layout, repacked or as stored; x the vectors n(x[t]) as split_vectors makes them for L. bias and
// residual may be null. Grid, threads, shared bytes, Rows and Tokens: mma_geometry.
//
// Exactness is that of ops/wide_product.cuh, which does the same with Hopper's tensor cores: the weights are as stored,
// a value is two words of their type, products are exact and sums in float.
//
// Steps of 64 columns go through a ring of stages; a stage has a step for each part of the block's warps. Their sums
// meet in shared memory, part after part. A gated block has as many rows of the gate as of the up matrix.
//
// Dependent launches: as in ops/streamed_product.cuh.
#pragma once
#include "base/async_copy.cuh"
#include "base/keep_loop.h"
#include "base/warp_mma.cuh"
#include "layout/floats.cuh"
#include "ops/mma_geometry.h"
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

template <class Layout, int ColumnCount, int RowCount, int TokenCount, int MatrixCount>
struct MmaShape {
  using L = Layout;
  static constexpr int kColumns = ColumnCount, kTileRows = RowCount, kTokens = TokenCount, kMatrices = MatrixCount;
  static constexpr Slices kSlices = L::row_slices(kColumns);
  static constexpr int kRows = kTileRows / kMatrices;  // of a matrix
  static constexpr int kWarpRows = mma_warp_rows(kTileRows), kWarpTokens = mma_warp_tokens(kTokens);
  static constexpr int kParts = mma_parts(kTileRows, kTokens), kThreads = 32 * kMmaWarps;
  static constexpr int kSteps = kColumns / kWideColumns, kStages = (kSteps + kParts - 1) / kParts;
  static constexpr int kStageBytes = mma_stage_bytes(kTileRows, kTokens), kRing = mma_ring(kTileRows, kTokens);
  // A part's share of a stage: its rows' weights, the tokens' first words, their second words.
  static constexpr int kPartBytes = kStageBytes / kParts, kWordBytes = kTokens * kTileRowBytes;
  static constexpr int kWeightBytes = kTileRows * kTileRowBytes;
  // Of the sums in shared memory: two tokens on, the banks are eight on.
  static constexpr int kSumsStride = kTileRows + 4, kPartSums = kTokens * kSumsStride;
  static_assert(L::kFloat && L::kBytes256 == 512, "weights of two bytes, as they are");
};

struct MmaTask {
  const uint8_t *weights, *up, *x;
  int rows, tokens;
};

/// Asks for a stage's weights, of rows beyond the matrix its last. Of a row of the tile, eight threads copy 16 bytes
/// each.
template <class S>
__device__ __forceinline__ void copy_stage_weights(const MmaTask& task, uint8_t* slot, int stage) {
  constexpr int kSliceSteps = S::kSlices.full * kBlockColumns / kWideColumns, kAtOnce = S::kThreads / 8;
  const int tile_row = static_cast<int>(threadIdx.x) / 8, entry = threadIdx.x % 8;
  const int first = static_cast<int>(blockIdx.y) * S::kRows;
  LANE_UNROLL
  for (int part = 0; part < S::kParts; part++) {
    const int step = stage * S::kParts + part, slice = step / kSliceSteps;
    if (step >= S::kSteps) return;
    const int row_bytes =
        slice_row_bytes(S::L::kBytes256, slice == S::kSlices.count - 1 ? S::kSlices.last : S::kSlices.full);
    const size_t from = slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, slice) +
                        static_cast<size_t>(step % kSliceSteps * kTileRowBytes + 16 * entry);
    uint8_t* to = slot + part * S::kPartBytes + swizzled(tile_row, entry);
    LANE_UNROLL
    for (int i = 0; i < S::kTileRows; i += kAtOnce) {
      const bool is_up = S::kMatrices == 2 && tile_row + i >= S::kRows;
      const int row = min(first + tile_row + i - (is_up ? S::kRows : 0), task.rows - 1);
      async_copy(to + i * kTileRowBytes,
                 (is_up ? task.up : task.weights) + from + static_cast<size_t>(row) * static_cast<size_t>(row_bytes));
    }
  }
}
/// And for its vectors; `vectors`: the block's first token in note [split vectors], whose rows lie swizzled.
template <class S>
__device__ __forceinline__ void copy_stage_vectors(const uint8_t* vectors, uint8_t* slot, int stage) {
  const int own = 16 * static_cast<int>(threadIdx.x);
  LANE_UNROLL
  for (int part = 0; part < S::kParts; part++) {
    const int step = stage * S::kParts + part;
    if (step >= S::kSteps) return;
    LANE_UNROLL
    for (int word = 0; word < 2; word++) {
      const uint8_t* from = vectors + static_cast<int64_t>(2 * step + word) * kWideTileBytes + own;
      uint8_t* to = slot + part * S::kPartBytes + S::kWeightBytes + word * S::kWordBytes + own;
      LANE_UNROLL
      for (int i = 0; i < S::kWordBytes; i += 16 * S::kThreads) async_copy(to + i, from + i);
    }
  }
}

/// A warp's place: its rows and tokens in the block's tile, and its part.
struct MmaWarp {
  int row, token, part;
};
template <class S>
__device__ __forceinline__ MmaWarp mma_warp() {
  constexpr int kRowWarps = S::kTileRows / S::kWarpRows, kTileWarps = kMmaWarps / S::kParts;
  const int warp = static_cast<int>(threadIdx.x) / 32, in_tile = warp % kTileWarps;
  return {in_tile % kRowWarps * S::kWarpRows, in_tile / kRowWarps * S::kWarpTokens, warp / kTileWarps};
}

/// A warp's sums: tiles of 16 rows by 16 tokens.
template <class S>
struct MmaSums {
  float of[S::kWarpRows / 16][S::kWarpTokens / 16][2][4];
};

/// Adds the products of a part's step.
template <class S>
__device__ __forceinline__ void add_part_step(MmaSums<S>& sums, const uint8_t* step, const MmaWarp& warp) {
  LANE_UNROLL
  for (int k = 0; k < kWideColumns / 16; k++) {
    TileFragment weights[S::kWarpRows / 16];
    LANE_UNROLL
    for (int m = 0; m < S::kWarpRows / 16; m++) weights[m] = load_fragment(step, warp.row + 16 * m, k);
    LANE_UNROLL
    for (int n = 0; n < S::kWarpTokens / 16; n++) {
      LANE_UNROLL
      for (int word = 0; word < 2; word++) {
        const TileFragment x = load_fragment(step + S::kWeightBytes + word * S::kWordBytes, warp.token + 16 * n, k);
        LANE_UNROLL
        for (int m = 0; m < S::kWarpRows / 16; m++)
          multiply_fragments<typename S::L::Words>(sums.of[m][n], weights[m], x);
      }
    }
  }
}

/// To shared memory, [part][token][row].
template <class S>
__device__ __forceinline__ void gather_sums(const MmaSums<S>& sums, float* gathered, const MmaWarp& warp) {
  const int lane = static_cast<int>(threadIdx.x & 31u);
  float* own = gathered + warp.part * S::kPartSums + (warp.token + lane % 4 * 2) * S::kSumsStride + warp.row + lane / 4;
  LANE_UNROLL
  for (int m = 0; m < S::kWarpRows / 16; m++) {
    LANE_UNROLL
    for (int n = 0; n < S::kWarpTokens / 16; n++) {
      LANE_UNROLL
      for (int i = 0; i < 8; i++)
        own[(16 * n + i / 4 * 8 + i % 2) * S::kSumsStride + 16 * m + i % 4 / 2 * 8] = sums.of[m][n][i / 4][i % 4];
    }
  }
}

/// A row of the tile times a token's vector.
template <class S>
__device__ __forceinline__ float tile_sum(const float* gathered, int token, int tile_row, float factor) {
  float sum = 0;
  LANE_UNROLL
  for (int part = 0; part < S::kParts; part++) sum += gathered[part * S::kPartSums + token * S::kSumsStride + tile_row];
  return sum * factor;
}

/// The results, several at a time: what is added is read before any of them is stored, since a read behind a store
/// would wait for it.
template <class S>
__device__ __forceinline__ void store_results(const MmaTask& task, const StreamedResult& result, const float* gathered,
                                              const float* factors) {
  constexpr int kOwn = S::kTokens * S::kRows / S::kThreads, kAtOnce = kOwn < 8 ? kOwn : 8;
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows,
            first_token = static_cast<int>(blockIdx.x) * S::kTokens;
  for (int i = 0; i < kOwn; i += kAtOnce) {
    float values[kAtOnce];
    const auto place = [&](int j) {
      const int at = static_cast<int>(threadIdx.x) + (i + j) * S::kThreads, token = at / S::kRows;
      const int row = first_row + at % S::kRows;
      const bool there = row < task.rows && first_token + token < task.tokens;
      return there ? static_cast<int64_t>(first_token + token) * task.rows + row : -1;
    };
    LANE_UNROLL
    for (int j = 0; j < kAtOnce; j++) {
      const int at = static_cast<int>(threadIdx.x) + (i + j) * S::kThreads, token = at / S::kRows, row = at % S::kRows;
      const float factor = __ldcg(factors + token);
      values[j] = tile_sum<S>(gathered, token, row, factor);
      if (S::kMatrices == 2)
        values[j] = gate_activation(values[j], result.gelu) * tile_sum<S>(gathered, token, S::kRows + row, factor);
      if (result.bias && place(j) >= 0) values[j] += __ldg(result.bias + first_row + row);
      if (result.residual && place(j) >= 0) values[j] += __ldcg(result.residual + place(j));
    }
    LANE_UNROLL
    for (int j = 0; j < kAtOnce; j++)
      if (place(j) >= 0) result.out[place(j)] = values[j];
  }
}

template <class S>
__device__ __forceinline__ void mma_block(const MmaTask& task, const StreamedResult& result) {
  constexpr int kAhead = S::kRing - 1;  // stages on their way beside the one at work
  LANE_DYNAMIC_SHARED(uint8_t, slots);
  const int first_token = static_cast<int>(blockIdx.x) * S::kTokens, in_tile = first_token % kWideTokens;
  const uint8_t* tile = task.x + first_token / kWideTokens * split_tile_bytes(S::kColumns);
  const uint8_t* vectors = tile + in_tile * kTileRowBytes;
  for (int i = 0; i < kAhead && i < S::kStages; i++) copy_stage_weights<S>(task, slots + i * S::kStageBytes, i);
  await_producer();
  for (int i = 0; i < kAhead; i++) {
    if (i < S::kStages) copy_stage_vectors<S>(vectors, slots + i * S::kStageBytes, i);
    end_copy_group();
  }
  const MmaWarp warp = mma_warp<S>();
  MmaSums<S> sums = {};
  int slot = 0, next = kAhead;
  LANE_KEEP_LOOP
  for (int stage = 0; stage < S::kStages; stage++) {
    wait_copy_groups<kAhead - 1>();
    __syncthreads();  // the stage is there, and nobody reads the one before it any more
    if (stage + kAhead < S::kStages) {
      copy_stage_weights<S>(task, slots + next * S::kStageBytes, stage + kAhead);
      copy_stage_vectors<S>(vectors, slots + next * S::kStageBytes, stage + kAhead);
    }
    end_copy_group();
    if (stage * S::kParts + warp.part < S::kSteps)
      add_part_step<S>(sums, slots + slot * S::kStageBytes + warp.part * S::kPartBytes, warp);
    if (++slot == S::kRing) slot = 0;
    if (++next == S::kRing) next = 0;
  }
  __syncthreads();
  auto* gathered = reinterpret_cast<float*>(slots);
  static_assert(S::kParts * S::kPartSums * 4 <= S::kRing * S::kStageBytes, "the sums take the ring's place");
  gather_sums<S>(sums, gathered, warp);
  __syncthreads();
  const auto* factors = reinterpret_cast<const float*>(tile + split_tile_bytes(S::kColumns)) - kWideTokens + in_tile;
  store_results<S>(task, result, gathered, factors);
}

template <class L, int Columns, int Rows, int Tokens>
__global__ __launch_bounds__(32 * kMmaWarps, 2) void mma_product(float* out, const uint8_t* weights, const uint8_t* x,
                                                                 const float* bias, const float* residual, int rows,
                                                                 int tokens) {
  admit_consumer();
  mma_block<MmaShape<L, Columns, Rows, Tokens, 1>>({weights, nullptr, x, rows, tokens}, {out, bias, residual, 0});
}

template <class L, int Columns, int Rows, int Tokens>
__global__ __launch_bounds__(32 * kMmaWarps, 2) void mma_gated_product(float* out, const uint8_t* gate,
                                                                       const uint8_t* up, const uint8_t* x, int gelu,
                                                                       int rows, int tokens) {
  admit_consumer();
  mma_block<MmaShape<L, Columns, Rows, Tokens, 2>>({gate, up, x, rows, tokens}, {out, nullptr, nullptr, gelu});
}

}  // namespace LANE_NAMESPACE
