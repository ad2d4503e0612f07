// The warps of a product of a chunk's many tokens (ops/chunk_product.cuh) that copy: weights, three of them, and
// vectors.
#pragma once
#include "base/async_copy.cuh"
#include "base/keep_loop.h"
#include "base/role_ring.cuh"
#include "layout/packing.cuh"
#include "ops/chunk_shape.cuh"

namespace LANE_NAMESPACE {

/// Has a slice of the block's rows on its way to the L2: they lie together there. The blocks of other tokens have the
/// same rows, so each asks for its part of them.
template <class S>
__device__ __forceinline__ void prefetch_slice(const HalvesTask& task, int slice) {
  if (slice >= S::kSlices.count) return;
  const int blocks = slice == S::kSlices.count - 1 ? S::kSlices.last : S::kSlices.full;
  const int row_bytes = slice_row_bytes(S::L::kBytes256, blocks), first = task.first_row;
  const int there = min(S::kRows, task.rows - first), askers = static_cast<int>(gridDim.x);
  const int share = (there + askers - 1) / askers, own = static_cast<int>(blockIdx.x) * share;
  if (own >= there) return;
  for (int m = 0; m < S::kMatrices; m++)
    bulk_prefetch(task.matrices[m] + slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, slice) +
                      static_cast<size_t>(first + own) * static_cast<size_t>(row_bytes),
                  static_cast<uint32_t>(min(share, there - own) * row_bytes));
}

/// The warps that copy weights.
template <class S>
struct WeightProducer {
  static constexpr int kThreads = kChunkProducers - 32;
  const HalvesTask& task;
  const HalvesShared<S>& shared;
  const WindowRing<S::kWindowSlots>& ring;
  int thread;  // of kThreads

  /// A plane of `Bytes` for 256 weights: `from` and `to` are its first bytes in the slice's first row and in the
  /// window's.
  template <int Bytes>
  __device__ __forceinline__ void copy_plane(int window, const HalvesWindow<S>& w, int before) const {
    constexpr int kUnit = Bytes % 16 ? 2 : 16;
    const int row_bytes = slice_row_bytes(S::L::kBytes256, w.of_slice()), first_row = task.first_row;
    const size_t in_row = static_cast<size_t>(before * w.of_slice() / 8 + Bytes * w.first / 8);
    const size_t slice = slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, w.slice) + in_row;
    const int bytes = Bytes * w.blocks() / 8, unit = bytes % 16 ? 2 : kUnit, units = bytes / unit;
    for (int i = thread; i < S::kTileRows * units; i += kThreads) {
      const int tile_row = i / units, at = i % units * unit;
      const int row = min(first_row + row_of_tile<S>(tile_row), task.rows - 1);
      const uint8_t* matrix = S::kMatrices == 2 && tile_row / 8 % 2 ? task.matrices[1] : task.matrices[0];
      const uint8_t* from = matrix + slice + static_cast<size_t>(row) * static_cast<size_t>(row_bytes) + at;
      uint8_t* to = shared.row(window, tile_row) + before * w.blocks() / 8 + at;
      if (unit == 16)
        async_copy(to, from);
      else
        store_as(to, __ldg(reinterpret_cast<const uint16_t*>(from)));
    }
  }
  template <int Plane>
  __device__ __forceinline__ void copy_planes(int window, const HalvesWindow<S>& w, int before) const {
    constexpr int kPlanes = sizeof(S::L::kPlanes) / sizeof(int);
    if constexpr (Plane < kPlanes) {
      constexpr int kBytes = S::L::kPlanes[Plane];
      copy_plane<kBytes>(window, w, before);
      copy_planes<Plane + 1>(window, w, before + kBytes);
    }
  }
  __device__ __forceinline__ void fill(int window) const {
    if (window >= S::kWindows) return;
    const HalvesWindow<S> w(window);
    ring.await_room(window);
    if (thread == 0 && w.first == 0) prefetch_slice<S>(task, w.slice + 1);
    copy_planes<0>(window, w, 0);
    ring.publish(window);
  }
  __device__ __forceinline__ void run(const RoleRing<S::kRing>& steps) const {
    for (int window = 0; window < S::kWindowSlots - 1; window++) fill(window);
    steps.begin();
    LANE_KEEP_LOOP
    for (int step = 0; step < S::kSteps; step++) {
      const WindowBlock at = window_block(S::kSlices, S::kBlocks * step);
      if (at.at == 0) fill(at.window + S::kWindowSlots - 1);
      steps.pass();
    }
  }
};

/// The warp that has vectors copied.
template <class S>
struct VectorProducer {
  const HalvesTask& task;
  const HalvesShared<S>& shared;
  const RoleRing<S::kRing>& ring;
  static constexpr int kByteTiles = S::kRests + S::kLosesBits;  // that the product reads

  __device__ __forceinline__ void copy(int step) const {
    const int token = static_cast<int>(blockIdx.x) * S::kTokens, first = token / kChunkTokens;
    const int in_tile = token % kChunkTokens;  // 0 where a block has whole tiles
    const int there = min(S::kTiles, (task.tokens + kChunkTokens - 1) / kChunkTokens - first);
    const WindowBlock last = window_block(S::kSlices, S::kBlocks * step + S::kBlocks - 1);
    const bool sums = S::L::kMinimums && last.at == HalvesWindow<S>(last.window).blocks() - 1;
    constexpr int kTile = S::kTileTokens * kTileRowBytes, kByteTile = S::kTileTokens * kByteTileRowBytes,
                  kTileSums = S::kTileTokens * kChunkTokenSumBytes;
    const int part = S::kParts == 1 ? 0 : static_cast<int>(blockIdx.z);
    const int all_step = part * S::kSteps + step, all_window = part * S::kWindows + last.window;
    const uint8_t* x = task.x + static_cast<int64_t>(first) * S::kVectorBytes;
    CopyBarrier* barrier = ring.full + step % S::kRing;
    constexpr int kTileFactors = 4 * S::kTileTokens;
    const bool factors = step == 0;
    if ((threadIdx.x & 31) == 0)
      expect_copies(barrier, static_cast<uint32_t>(there * (kTile + kByteTiles * kByteTile + (sums ? kTileSums : 0) +
                                                            (factors ? kTileFactors : 0))));
    for (int tile = 0; tile < there; tile++, x += S::kVectorBytes) {
      const uint8_t* of_step = x + all_step * chunk_step_bytes(S::kWords);
      bulk_copy_of_warp(shared.halves(step).pointer() + tile * kTile, of_step + in_tile * kTileRowBytes, kTile,
                        barrier);
      LANE_UNROLL
      for (int i = 0; i < kByteTiles; i++)
        bulk_copy_of_warp(shared.rests(step).pointer() + (i * S::kTiles + tile) * kByteTile,
                          of_step + kChunkTileBytes + i * kChunkByteTileBytes + in_tile * kByteTileRowBytes, kByteTile,
                          barrier);
      if (sums)
        bulk_copy_of_warp(shared.sums(step).pointer() + tile * kTileSums,
                          x + S::kParts * S::kSteps * chunk_step_bytes(S::kWords) + all_window * kChunkSumBytes +
                              in_tile * kChunkTokenSumBytes,
                          kTileSums, barrier);
      if (factors)
        bulk_copy_of_warp(reinterpret_cast<uint8_t*>(shared.factors()) + tile * kTileFactors,
                          x + S::kVectorBytes + 4 * (in_tile - kChunkTokens), kTileFactors, barrier);
    }
  }
  __device__ __forceinline__ void run() const {
    ring.begin();
    LANE_KEEP_LOOP
    for (int step = 0; step < S::kSteps; step++) {
      ring.await_room(step);
      copy(step);
      ring.pass();
    }
  }
};

}  // namespace LANE_NAMESPACE
