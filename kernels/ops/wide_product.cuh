// Products of repacked float weights and a chunk's many tokens, on tensor cores (sm_90a):
//
//   wide_product<L, Columns, Groups, Tiles>(out, weights, x, bias, residual, rows, tokens)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   wide_gated_product<L, Columns, Groups, Tiles>(out, gate, up, x, gelu, rows, tokens)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a float repacked layout, x the vectors n(x[t]) as split_vectors makes them. bias and residual may be null. Grid,
// threads, shared bytes, Groups and Tiles: wide_geometry.
//
// The weights are as stored, a value is two words of their type, products are exact and sums in float: the tensor
// cores' order, so not the bits of streamed_product. The error is split_vectors' and that of the sums.
//
// A block has 64 tokens a tile and 64 rows for each group of four warps; of a gated product 32 rows of both matrices,
// eight and eight in turn, so that a thread has both sums of a result. Steps of 64 columns go through a ring.
//
// Dependent launches: as in ops/streamed_product.cuh.
#pragma once
#include "base/keep_loop.h"
#include "base/warpgroup_mma.cuh"
#include "ops/streamed_product.cuh"
#include "ops/wide_geometry.h"

namespace LANE_NAMESPACE {

template <class Layout, int ColumnCount, int GroupCount, int TileCount, int MatrixCount>
struct WideShape {
  using L = Layout;
  static constexpr int kColumns = ColumnCount, kGroups = GroupCount, kTiles = TileCount, kMatrices = MatrixCount;
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kSteps = kColumns / kWideColumns, kThreads = 128 * kGroups;
  static constexpr int kSlotBytes = wide_slot_bytes(kGroups, kTiles), kRing = wide_ring(kGroups, kTiles);
  static constexpr int kTokens = kTiles * kWideTokens, kSums = kTokens / 2;  // of a block, of a thread
  static constexpr int kRows = kGroups * kWideGroupRows / kMatrices;         // of a matrix
  static_assert(L::kFloat && L::kBytes256 == 512, "weights of two bytes, as they are");
};

struct WideTask {
  const uint8_t *weights, *up, *x;
  int rows, tokens;
};

/// Row `tile_row` of the block's: of which matrix, and its number from the block's first.
struct WideRow {
  int matrix, row;
};
template <class S>
__device__ __forceinline__ WideRow wide_row(int tile_row) {
  if (S::kMatrices == 1) return {0, tile_row};
  return {tile_row / 8 % 2, tile_row / 16 * 8 + tile_row % 8};
}

/// Asks for a step's weights, of rows beyond the matrix its last; a group of copies even where there is no such step.
template <class S>
__device__ __forceinline__ void copy_weights(const WideTask& task, uint8_t* slot, int step) {
  constexpr int kSliceSteps = S::kSlices.full * kBlockColumns / kWideColumns, kEntries = kWideColumns / 8;
  const int slice = step / kSliceSteps, blocks = slice == S::kSlices.count - 1 ? S::kSlices.last : S::kSlices.full;
  const int row_bytes = slice_row_bytes(S::L::kBytes256, blocks), first = static_cast<int>(blockIdx.y) * S::kRows;
  const size_t from = slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, slice) +
                      static_cast<size_t>(step % kSliceSteps * kTileRowBytes);
  LANE_UNROLL
  for (int i = threadIdx.x; i < S::kGroups * kWideGroupRows * kEntries; i += S::kThreads) {
    const int tile_row = i / kEntries, entry = i % kEntries;
    const WideRow at = wide_row<S>(tile_row);
    const uint8_t* matrix = S::kMatrices == 2 && at.matrix ? task.up : task.weights;
    async_copy(slot + swizzled(tile_row, entry),
               matrix + from + static_cast<size_t>(min(first + at.row, task.rows - 1)) * row_bytes + 16 * entry);
  }
}
/// And, by one thread, for its vectors, the first words of all tiles and then the second; `tiles`: the block's.
template <class S>
__device__ __forceinline__ void copy_split_vectors(const uint8_t* tiles, uint8_t* slot, int step,
                                                   CopyBarrier* barrier) {
  expect_copies(barrier, 2 * S::kTiles * kWideTileBytes);
  for (int i = 0; i < 2 * S::kTiles; i++) {
    const int word = i / S::kTiles, tile = i % S::kTiles;
    bulk_copy(slot + (S::kGroups + i) * kWideTileBytes,
              tiles + tile * split_tile_bytes(S::kColumns) + (2 * step + word) * kWideTileBytes, kWideTileBytes,
              barrier);
  }
}

/// The group's sums of a step, on their way.
template <class S>
__device__ __forceinline__ void add_step(float (&sums)[S::kSums], const uint8_t* slot, int group) {
  const uint8_t* vectors = slot + S::kGroups * kWideTileBytes;
  begin_tile_products();
  LANE_UNROLL
  for (int word = 0; word < 2; word++) {
    LANE_UNROLL
    for (int k = 0; k < kWideColumns / 16; k++)
      add_tile_product<typename S::L::Words, S::kTokens>(sums, slot + group * kWideTileBytes,
                                                         vectors + word * S::kTiles * kWideTileBytes, k);
  }
  end_tile_products();
}

/// Where a thread's sum `i` belongs. Rows of the matrix and tokens, both from the block's first.
template <class S>
struct WidePlace {
  int row, token;
  __device__ __forceinline__ explicit WidePlace(int i) {
    const int lane = threadIdx.x & 31;
    row = wide_row<S>((static_cast<int>(threadIdx.x) >> 5) * 16 + lane / 4 + i % 4 / 2 * 8).row;
    token = i / 4 * 8 + lane % 4 * 2 + i % 2;
  }
};

/// The results. Everything is read before anything is stored: a read behind a store would wait for the one before it.
template <class S>
__device__ __forceinline__ void store_sums(const WideTask& task, const StreamedResult& result, float (&sums)[S::kSums],
                                           const uint8_t* tiles) {
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows,
            first_token = static_cast<int>(blockIdx.x) * S::kTokens;
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    const int token = WidePlace<S>(i).token;
    const uint8_t* tile_end = tiles + (token / kWideTokens + 1) * split_tile_bytes(S::kColumns);
    sums[i] *= __ldcg(reinterpret_cast<const float*>(tile_end) - kWideTokens + token % kWideTokens);
  }
  const auto there = [&](WidePlace<S> at) {
    return first_row + at.row < task.rows && first_token + at.token < task.tokens;
  };
  const auto place = [&](WidePlace<S> at) {
    return static_cast<int64_t>(first_token + at.token) * task.rows + first_row + at.row;
  };
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    const WidePlace<S> at(i);
    if (S::kMatrices == 2 && i % 4 < 2) sums[i] = gate_activation(sums[i], result.gelu) * sums[i + 2];
    if (result.bias && there(at)) sums[i] += __ldg(result.bias + first_row + at.row);
    if (result.residual && there(at)) sums[i] += __ldcg(result.residual + place(at));
  }
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    const WidePlace<S> at(i);
    if ((S::kMatrices == 1 || i % 4 < 2) && there(at)) result.out[place(at)] = sums[i];
  }
}

template <class S>
__device__ __forceinline__ void wide_block(const WideTask& task, const StreamedResult& result) {
  // Steps on their way beside the one at work and the one before it, which some warps may not have left.
  constexpr int kAhead = S::kRing - 2;
  __shared__ CopyBarrier barriers[S::kRing];
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  uint8_t* slots = shared + (1024 - reinterpret_cast<uintptr_t>(shared) % 1024) % 1024;
  const uint8_t* tiles = task.x + blockIdx.x * (S::kTiles * split_tile_bytes(S::kColumns));
  for (int i = 0; i < kAhead; i++) {
    if (i < S::kSteps) copy_weights<S>(task, slots + i * S::kSlotBytes, i);
    end_copy_group();
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kRing; i++) init_copy_barrier(barriers + i);
    publish_copy_barriers();
  }
  __syncthreads();
  await_producer();
  for (int i = 0; i < kAhead && i < S::kSteps && threadIdx.x == 0; i++)
    copy_split_vectors<S>(tiles, slots + i * S::kSlotBytes, i, barriers + i);
  float sums[S::kSums] = {};
  int slot = 0, next = kAhead;
  uint32_t parity = 0;
  LANE_KEEP_LOOP
  for (int step = 0; step < S::kSteps; step++) {
    wait_tile_copies<kAhead - 1>();
    wait_copy(barriers + slot, parity);
    __syncthreads();  // the step is there, and nobody reads the one before the last any more
    add_step<S>(sums, slots + slot * S::kSlotBytes, static_cast<int>(threadIdx.x) / 128);
    if (step + kAhead < S::kSteps) {
      if (threadIdx.x == 0) copy_split_vectors<S>(tiles, slots + next * S::kSlotBytes, step + kAhead, barriers + next);
      copy_weights<S>(task, slots + next * S::kSlotBytes, step + kAhead);
    }
    end_copy_group();
    await_tile_products<1>(sums);
    if (++slot == S::kRing) slot = 0, parity ^= 1;
    if (++next == S::kRing) next = 0;
  }
  await_tile_products<0>(sums);
  store_sums<S>(task, result, sums, tiles);
}

template <class L, int Columns, int Groups, int Tiles>
__global__ __launch_bounds__(128 * Groups, 1) void wide_product(float* out, const uint8_t* weights, const uint8_t* x,
                                                                const float* bias, const float* residual, int rows,
                                                                int tokens) {
  admit_consumer();
  wide_block<WideShape<L, Columns, Groups, Tiles, 1>>({weights, nullptr, x, rows, tokens}, {out, bias, residual, 0});
}

template <class L, int Columns, int Groups, int Tiles>
__global__ __launch_bounds__(128 * Groups, 1) void wide_gated_product(float* out, const uint8_t* gate,
                                                                      const uint8_t* up, const uint8_t* x, int gelu,
                                                                      int rows, int tokens) {
  admit_consumer();
  wide_block<WideShape<L, Columns, Groups, Tiles, 2>>({gate, up, x, rows, tokens}, {out, nullptr, nullptr, gelu});
}

}  // namespace LANE_NAMESPACE
