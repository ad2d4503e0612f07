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
#include "layout/slices.h"

namespace LANE_NAMESPACE {

constexpr int kChunkTokens = 64;      // tokens that lie together
constexpr int kChunkColumns = 64;     // of a step
constexpr int kChunkGroupRows = 64;   // of four warps
constexpr int kChunkProducers = 128;  // threads that copy
constexpr int kChunkConsumers = 256;  // threads that multiply
constexpr int kChunkWindowBlocks = 8;
constexpr int kChunkTileBytes = 64 * kChunkColumns * 2;
constexpr int kChunkSumBytes = 64 * 16 * 2;

/// Windows of a slice of so many blocks, of a row, and before slice `slice`.
LANE_ANYWHERE constexpr int slice_windows(int blocks) { return (blocks + kChunkWindowBlocks - 1) / kChunkWindowBlocks; }
LANE_ANYWHERE constexpr int chunk_windows(int columns) {
  const Slices s = slices(columns);
  return (s.count - 1) * slice_windows(s.full) + slice_windows(s.last);
}
/// A block of a row: its window, and its place there.
struct WindowBlock {
  int window, at;
};
LANE_ANYWHERE constexpr WindowBlock window_block(Slices s, int block) {
  const int slice = block / s.full, in_slice = block - slice * s.full;
  return {slice * slice_windows(s.full) + in_slice / kChunkWindowBlocks, in_slice % kChunkWindowBlocks};
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
  return tokens / kChunkTokens * (words * kChunkTileBytes + kChunkSumBytes);
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
/// As many steps' vectors as fit beside the barriers.
LANE_ANYWHERE constexpr int chunk_ring(int words, int tokens, int groups, int bytes_256) {
  int ring = 8;
  while (chunk_shared_bytes(words, tokens, groups, bytes_256, ring) > 226 * 1024) ring--;
  return ring;
}

/// Registers of a thread: all that a multiprocessor has.
constexpr int kChunkProducerRegisters = 72, kChunkConsumerRegisters = 216;

struct ChunkGeometry {
  int tokens, groups, splits;  // of a block of threads, template arguments of the kernels; a group is of 64 rows
  int grid_x, grid_y, threads, shared_bytes;
};

struct ChunkMatrix {
  int rows, bytes_256;  // its format's bytes for 256 weights
};

/// Products of `count` matrices (or one gated product, of the gate) with `tokens` vectors in one launch: the largest
/// blocks of which there are enough for the chip. A block fills a multiprocessor. Shared memory from a multiple of
/// 1,024 bytes on.
constexpr ChunkGeometry chunk_geometry(const ChunkMatrix* matrices, int count, int tokens, bool gated, int words,
                                       int multiprocessors) {
  constexpr int kSizes[][3] = {{128, 2, 1}, {64, 2, 1}, {64, 1, 2}};
  ChunkGeometry g{};
  for (const auto& size : kSizes) {
    g.tokens = size[0], g.groups = size[1], g.splits = size[2];
    const int block_rows = g.groups * kChunkGroupRows / (gated ? 2 : 1);
    g.grid_x = (tokens + g.tokens - 1) / g.tokens, g.grid_y = 0;
    for (int i = 0; i < count; i++) g.grid_y += (matrices[i].rows + block_rows - 1) / block_rows;
    if (tokens > g.tokens / 2 && 8 * g.grid_x * g.grid_y >= 7 * multiprocessors) break;
  }
  g.threads = kChunkConsumers + kChunkProducers;
  for (int i = 0; i < count; i++) {
    const int ring = chunk_ring(words, g.tokens, g.groups, matrices[i].bytes_256);
    const int bytes = chunk_shared_bytes(words, g.tokens, g.groups, matrices[i].bytes_256, ring);
    if (bytes > g.shared_bytes) g.shared_bytes = bytes;
  }
  return g;
}
/// Whether a multiprocessor has the shared memory that such a block takes, its barriers included.
constexpr bool has_shared(const ChunkGeometry& g, int shared_limit) { return g.shared_bytes + 256 <= shared_limit; }

}  // namespace LANE_NAMESPACE
