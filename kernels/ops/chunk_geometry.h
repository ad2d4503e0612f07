// Launch geometry of the products of a chunk's many tokens (ops/chunk_product.cuh), and how their vectors lie: plain
// C++, for the planner, the bench and the tests.
//
// note [windows]
// A window is up to eight blocks of a slice's row: all 256 columns that may share a scale. A step is two blocks.
//
// note [half vectors]
// A token's vector is scaled by a power of two, so that its greatest value lies between 2^14 and 2^15, and rounded to
// halves. With two words what they lose is kept, too, in E4M3 (base/fp8.cuh): some 15 bits in all. Tokens go by 64;
// tokens of the last 64 that do not exist are zeros. 64 tokens' vectors are
//   [columns / 64] steps, each a swizzled tile of the halves of 64 tokens (base/swizzled.cuh) and, with two words, two
//            byte tiles, note [byte tiles]: what the halves lose times kRestGain, and the values times kCoarseScale. Of
//            sixteen columns a row of halves has first columns 4 c and 4 c + 1, then 4 c + 2 and 4 c + 3, c from 0 to
//            3: so a lane's share of a fragment, note [fragments], is four bytes of codes that lie together
//   [windows] sums of the scaled values of each block times kSumScale, in two halves: a core tile of 64 tokens, the
//            eight blocks' first words and their second
//   [64] floats: what a result is to be multiplied by, the norm's factor and the scaling's inverse
//
// note [parts]
// Where a matrix has few blocks of rows, several blocks have a part of its columns each, whole slices: to a block its
// part is a matrix like another. They leave their sums, and the last of them to arrive adds the parts' in their order.
#pragma once
#include <cstdint>

#include "layout/slices.h"

namespace LANE_NAMESPACE {

constexpr int kChunkTokens = 64;      // tokens that lie together
constexpr int kChunkColumns = 64;     // of a step
constexpr int kChunkGroupRows = 64;   // of four warps
constexpr int kChunkProducers = 128;  // threads that copy
constexpr int kChunkWindowBlocks = 8;
constexpr int kChunkCounters = 256;  // of blocks that have parts of the same rows
constexpr int kChunkTileBytes = 64 * kChunkColumns * 2;
constexpr int kChunkByteTileBytes = 64 * kChunkColumns;
constexpr float kSumScale = 1.f / 32;      // a half holds the sum of 32 values
constexpr float kCoarseScale = 1.f / 256;  // to 128 at most: E4M3 ends at 448
constexpr float kRestGain = 1.0625f;       // what E5M2 of weights lacks of them, note [coarse weights]
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
/// Whether so many blocks can have a part of a row each, note [parts].
LANE_ANYWHERE constexpr bool chunk_parts_fit(int columns, int parts) {
  const Slices s = slices(columns);
  return s.count % parts == 0 && s.full == s.last && s.full % kChunkWindowBlocks == 0;
}
/// Bytes of a step of 64 tokens' vectors.
LANE_ANYWHERE constexpr int chunk_step_bytes(int words) {
  return kChunkTileBytes + (words - 1) * 2 * kChunkByteTileBytes;
}
/// Of all of them.
LANE_ANYWHERE constexpr int chunk_vector_bytes(int columns, int words) {
  return columns / kChunkColumns * chunk_step_bytes(words) + chunk_windows(columns) * kChunkSumBytes + 4 * kChunkTokens;
}
/// Of all tokens' vectors; behind them lie kChunkCounters counters.
LANE_ANYWHERE constexpr size_t chunk_counters_offset(int columns, int words, int tokens) {
  return static_cast<size_t>((tokens + kChunkTokens - 1) / kChunkTokens) *
         static_cast<size_t>(chunk_vector_bytes(columns, words));
}
LANE_ANYWHERE constexpr size_t half_vectors_bytes(int columns, int words, int tokens) {
  return chunk_counters_offset(columns, words, tokens) + 4 * kChunkCounters;
}

/// Threads that make a vector's halves: a wide one's many, or few tokens would wait for one thread's values.
LANE_ANYWHERE constexpr int half_vectors_threads(int columns) { return columns < 8192 ? 256 : 1024; }

/// What a step's vectors take of shared memory, and behind them their window's sums.
LANE_ANYWHERE constexpr int chunk_slot_bytes(int words, int tokens) {
  return tokens * (words * kChunkColumns * 2 + kChunkTokenSumBytes);
}
/// From a row's window to the next row's: an odd number of 16 bytes, so that eight rows' loads fall on different banks.
LANE_ANYWHERE constexpr int chunk_row_stride(int bytes_256) { return (bytes_256 + 15) / 16 * 16 | 16; }
LANE_ANYWHERE constexpr int chunk_window_bytes(int bytes_256, int groups) {
  return groups * kChunkGroupRows * chunk_row_stride(bytes_256);
}
LANE_ANYWHERE constexpr int chunk_shared_bytes(int words, int tokens, int groups, int bytes_256, int ring,
                                               int windows) {
  return ring * chunk_slot_bytes(words, tokens) + windows * chunk_window_bytes(bytes_256, groups) + 4 * tokens + 1024;
}
/// Beside the barriers.
LANE_ANYWHERE constexpr bool chunk_slots_fit(int words, int tokens, int groups, int bytes_256, int ring, int windows) {
  return chunk_shared_bytes(words, tokens, groups, bytes_256, ring, windows) <= 226 * 1024;
}
/// Windows of weights in shared memory.
LANE_ANYWHERE constexpr int chunk_window_slots(int words, int tokens, int groups, int bytes_256) {
  return chunk_slots_fit(words, tokens, groups, bytes_256, 4, 4) ? 4 : 2;
}
/// As many steps' vectors, a power of two, as fit beside them: with few tokens steps are short, and a copy takes as
/// long.
LANE_ANYWHERE constexpr int chunk_ring(int words, int tokens, int groups, int bytes_256) {
  const int windows = chunk_window_slots(words, tokens, groups, bytes_256);
  int ring = 16;
  while (!chunk_slots_fit(words, tokens, groups, bytes_256, ring, windows)) ring /= 2;
  return ring;
}
LANE_ANYWHERE constexpr int chunk_shared_bytes(int words, int tokens, int groups, int bytes_256) {
  return chunk_shared_bytes(words, tokens, groups, bytes_256, chunk_ring(words, tokens, groups, bytes_256),
                            chunk_window_slots(words, tokens, groups, bytes_256));
}

/// Threads of a block, and registers of one where so many times four warps multiply: all that a multiprocessor has.
LANE_ANYWHERE constexpr int chunk_threads(int groups, int splits) { return 128 * groups * splits + kChunkProducers; }
LANE_ANYWHERE constexpr int chunk_consumer_registers(int fours) { return fours == 2 ? 216 : 104; }
LANE_ANYWHERE constexpr int chunk_producer_registers(int fours) { return fours == 2 ? 72 : 64; }

struct ChunkGeometry {
  int tokens, groups, splits;  // of a block of threads, template arguments of the kernels; a group is of 64 rows
  int grid_x, grid_y, threads, shared_bytes;
  int parts = 1;  // the grid's z; of several a template argument, too, note [parts]
};

struct ChunkMatrix {
  int rows, bytes_256;  // its format's bytes for 256 weights
};

/// The blocks there are, and what a step of all their warps takes, in nanoseconds: measured on an H200, with Q4_K
/// weights and two words.
struct ChunkSize {
  int tokens, groups, splits, step_time;
};
constexpr ChunkSize kChunkSizes[] = {{128, 2, 1, 670}, {64, 2, 1, 500},  {64, 1, 2, 780},
                                     {32, 2, 2, 950},  {32, 1, 4, 1300}, {32, 4, 1, 830}};
constexpr int kChunkBlockTime = 3500;  // of a block, beside its steps
constexpr int kChunkJoinTime = 3500;   // of parts
constexpr int kChunkMostParts = 8;

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
    const int bytes = chunk_shared_bytes(words, size.tokens, size.groups, matrices[i].bytes_256);
    if (bytes > g.shared_bytes) g.shared_bytes = bytes;
  }
  return g;
}

/// What a launch of matrices of so many columns should take, in nanoseconds.
constexpr int64_t chunk_time(const ChunkSize& size, const ChunkGeometry& g, int columns, int multiprocessors) {
  const int rounds = (g.grid_x * g.grid_y * g.parts + multiprocessors - 1) / multiprocessors;
  const int steps = (columns / g.parts / kChunkColumns + size.splits - 1) / size.splits;
  return static_cast<int64_t>(rounds) * (kChunkBlockTime + size.step_time * steps) + (g.parts > 1 ? kChunkJoinTime : 0);
}
/// Whether the blocks of one product can have so many parts, all of them at the same time.
constexpr bool chunk_takes_parts(const ChunkGeometry& g, int columns, int parts, int multiprocessors) {
  return parts == 1 || (chunk_parts_fit(columns, parts) && g.splits <= most_splits(columns / parts) &&
                        g.grid_x * g.grid_y * parts <= multiprocessors && g.grid_x * g.grid_y <= kChunkCounters);
}
/// Floats that parts leave.
constexpr size_t chunk_partial_floats(const ChunkGeometry& g) {
  return g.parts == 1 ? 0
                      : static_cast<size_t>(g.grid_x * g.grid_y * g.parts) *
                            static_cast<size_t>(g.tokens * g.groups * kChunkGroupRows);
}

/// In the blocks that should take the least time.
constexpr ChunkGeometry chunk_geometry(const ChunkMatrix* matrices, int count, int columns, int tokens, bool gated,
                                       int words, int multiprocessors) {
  ChunkGeometry best{};
  int64_t least = 0;
  for (const ChunkSize& size : kChunkSizes) {
    ChunkGeometry g = chunk_geometry_of(size, matrices, count, tokens, gated, words);
    if (size.splits > most_splits(columns)) continue;
    for (int parts = 1; parts <= (count > 1 || gated ? 1 : kChunkMostParts); parts++) {
      g.parts = parts;
      if (!chunk_takes_parts(g, columns, parts, multiprocessors)) continue;
      const int64_t time = chunk_time(size, g, columns, multiprocessors);
      if (!best.tokens || time < least) best = g, least = time;
    }
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
