// Launch geometry of the products of a chunk's many tokens (ops/chunk_product.cuh), and how their vectors lie: plain
// C++, for the planner, the bench and the tests.
//
// note [windows]
// A window is up to eight blocks of a slice's row: all 256 columns that may share a scale. A step is two blocks.
//
// note [half vectors]
// A token's vector is scaled by a power of two, so that its greatest value lies between 512 and 1024, and split into
// two halves, which together keep 22 bits and steps of 2^-24; with one word, rounded to one. Tokens go by 64; tokens
// of the last 64 that do not exist are zeros. 64 tokens' vectors are
//   [columns / 64] steps, each [words] swizzled tiles of 64 tokens (base/swizzled.cuh). Of sixteen columns a row has
//            first columns 4 c and 4 c + 1, then 4 c + 2 and 4 c + 3, c from 0 to 3: so a lane's share of a fragment,
//            note [fragments], is four bytes of codes that lie together
//   [windows] sums of the scaled values of each block, in two halves: a core tile of 64 tokens, the eight blocks' first
//            words and their second
//   [64] floats: what a result is to be multiplied by, the norm's factor and the scaling's inverse
#pragma once
#include <cstdint>

#include "layout/slices.h"

namespace LANE_NAMESPACE {

constexpr int kChunkTokens = 64;      // tokens that lie together
constexpr int kChunkColumns = 64;     // of a step
constexpr int kChunkGroupRows = 64;   // of four warps
constexpr int kChunkProducers = 128;  // threads that copy
constexpr int kChunkWindowBlocks = 8;
constexpr int kChunkTileBytes = 64 * kChunkColumns * 2;
constexpr int kChunkTokenSumBytes = 16 * 2;
constexpr int kChunkSumBytes = 64 * kChunkTokenSumBytes;

/// Windows of a slice of so many blocks, of a row, and before slice `slice`.
LANE_ANYWHERE constexpr int slice_windows(int blocks) { return (blocks + kChunkWindowBlocks - 1) / kChunkWindowBlocks; }
LANE_ANYWHERE constexpr int chunk_windows(int columns) {
  const Slices s = slices(columns);
  return (s.count - 1) * slice_windows(s.full) + slice_windows(s.last);
}
/// Whether all of a row's windows but its last are whole.
LANE_ANYWHERE constexpr bool whole_windows(Slices s) { return s.count == 1 || s.full % kChunkWindowBlocks == 0; }
/// A block of a row: its window, and its place there.
struct WindowBlock {
  int window, at;
};
LANE_ANYWHERE constexpr WindowBlock window_block(Slices s, int block) {
  if (whole_windows(s)) {
    const auto from_zero = static_cast<unsigned>(block);
    return {static_cast<int>(from_zero / kChunkWindowBlocks), static_cast<int>(from_zero % kChunkWindowBlocks)};
  }
  const int slice = block / s.full, in_slice = block - slice * s.full;
  return {slice * slice_windows(s.full) + in_slice / kChunkWindowBlocks, in_slice % kChunkWindowBlocks};
}
/// Splits of a block's steps, at most: each has a step in every window but the last.
LANE_ANYWHERE constexpr int most_splits(int columns) {
  return whole_windows(slices(columns)) && columns >= kChunkWindowBlocks * kBlockColumns ? 4 : 2;
}
/// Bytes of 64 tokens' vectors.
LANE_ANYWHERE constexpr int chunk_vector_bytes(int columns, int words) {
  return columns / kChunkColumns * words * kChunkTileBytes + chunk_windows(columns) * kChunkSumBytes + 4 * kChunkTokens;
}
LANE_ANYWHERE constexpr size_t half_vectors_bytes(int columns, int words, int tokens) {
  return static_cast<size_t>((tokens + kChunkTokens - 1) / kChunkTokens) *
         static_cast<size_t>(chunk_vector_bytes(columns, words));
}

/// What a step's vectors take of shared memory, and behind them their window's sums.
LANE_ANYWHERE constexpr int chunk_slot_bytes(int words, int tokens) {
  return tokens * (words * kChunkColumns * 2 + kChunkTokenSumBytes);
}
/// From a row's window to the next row's: an odd number of 16 bytes, so that eight rows' loads fall on different banks.
LANE_ANYWHERE constexpr int chunk_row_stride(int bytes_256) { return (bytes_256 + 15) / 16 * 16 | 16; }
LANE_ANYWHERE constexpr int chunk_window_bytes(int bytes_256, int groups) {
  return groups * kChunkGroupRows * chunk_row_stride(bytes_256);
}
/// Windows of weights in shared memory.
LANE_ANYWHERE constexpr int chunk_window_slots(int tokens, int groups) { return tokens * groups > 128 ? 2 : 4; }
LANE_ANYWHERE constexpr int chunk_shared_bytes(int words, int tokens, int groups, int bytes_256, int ring) {
  return ring * chunk_slot_bytes(words, tokens) +
         chunk_window_slots(tokens, groups) * chunk_window_bytes(bytes_256, groups) + 1024;
}
/// As many steps' vectors as fit beside the barriers: with few tokens steps are short, and a copy takes as long.
LANE_ANYWHERE constexpr int chunk_ring(int words, int tokens, int groups, int bytes_256) {
  int ring = 16;
  while (chunk_shared_bytes(words, tokens, groups, bytes_256, ring) > 226 * 1024) ring--;
  return ring;
}

/// Threads of a block, and registers of one where so many times four warps multiply: all that a multiprocessor has.
LANE_ANYWHERE constexpr int chunk_threads(int groups, int splits) { return 128 * groups * splits + kChunkProducers; }
LANE_ANYWHERE constexpr int chunk_consumer_registers(int fours) { return fours == 2 ? 216 : 104; }
LANE_ANYWHERE constexpr int chunk_producer_registers(int fours) { return fours == 2 ? 72 : 64; }

struct ChunkGeometry {
  int tokens, groups, splits;  // of a block of threads, template arguments of the kernels; a group is of 64 rows
  int grid_x, grid_y, threads, shared_bytes;
};

struct ChunkMatrix {
  int rows, bytes_256;  // its format's bytes for 256 weights
};

/// The blocks there are, and what a step of all their warps takes, in nanoseconds: measured on an H200, with Q4_K
/// weights and two words.
struct ChunkSize {
  int tokens, groups, splits, step_time;
};
constexpr ChunkSize kChunkSizes[] = {
    {128, 2, 1, 850}, {64, 2, 1, 560}, {64, 1, 2, 800}, {32, 2, 2, 820}, {32, 1, 4, 1300}};
constexpr int kChunkBlockTime = 3000;  // of a block, beside its steps

/// Products of `count` matrices (or one gated product, of the gate) with `tokens` vectors in one launch, in blocks of a
/// size. A block fills a multiprocessor. Shared memory from a multiple of 1,024 bytes on.
constexpr ChunkGeometry chunk_geometry_of(const ChunkSize& size, const ChunkMatrix* matrices, int count, int tokens,
                                          bool gated, int words) {
  ChunkGeometry g{size.tokens,
                  size.groups,
                  size.splits,
                  (tokens + size.tokens - 1) / size.tokens,
                  0,
                  chunk_threads(size.groups, size.splits),
                  0};
  const int block_rows = size.groups * kChunkGroupRows / (gated ? 2 : 1);
  for (int i = 0; i < count; i++) {
    g.grid_y += (matrices[i].rows + block_rows - 1) / block_rows;
    const int ring = chunk_ring(words, size.tokens, size.groups, matrices[i].bytes_256);
    const int bytes = chunk_shared_bytes(words, size.tokens, size.groups, matrices[i].bytes_256, ring);
    if (bytes > g.shared_bytes) g.shared_bytes = bytes;
  }
  return g;
}

/// What a launch of matrices of so many columns should take, in nanoseconds.
constexpr int64_t chunk_time(const ChunkSize& size, const ChunkGeometry& g, int columns, int multiprocessors) {
  const int rounds = (g.grid_x * g.grid_y + multiprocessors - 1) / multiprocessors;
  const int steps = (columns / kChunkColumns + size.splits - 1) / size.splits;
  return static_cast<int64_t>(rounds) * (kChunkBlockTime + size.step_time * steps);
}

/// In the blocks that should take the least time.
constexpr ChunkGeometry chunk_geometry(const ChunkMatrix* matrices, int count, int columns, int tokens, bool gated,
                                       int words, int multiprocessors) {
  ChunkGeometry best{};
  int64_t least = 0;
  for (const ChunkSize& size : kChunkSizes) {
    const ChunkGeometry g = chunk_geometry_of(size, matrices, count, tokens, gated, words);
    const int64_t time = chunk_time(size, g, columns, multiprocessors);
    if (size.splits > most_splits(columns) || (best.tokens && time >= least)) continue;
    best = g, least = time;
  }
  return best;
}
/// What three layouts' barriers take of shared memory.
constexpr int kChunkBarrierBytes = 1024;
/// Whether a multiprocessor has the shared memory that such a block takes, its barriers included.
constexpr bool has_shared(const ChunkGeometry& g, int shared_limit) {
  return g.shared_bytes + kChunkBarrierBytes <= shared_limit;
}

}  // namespace LANE_NAMESPACE
