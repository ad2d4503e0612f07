// Launch geometry of the products of several tokens (ops/tiled_product.cuh), and how their quantized vectors lie: plain
// C++, for the planner, the bench and the tests.
//
// note [quantized vectors]
// Tokens go by eight. Eight tokens' vectors of `columns` columns are, one block of 32 columns after the other,
//   words    [8 tokens][4][2 * words] words of four bytes: part c has words c and c + 4 of the block, of the high
//            bytes and then of the low ones; what lane (token, c) of a tensor core takes, in one load
// then [blocks][8 tokens] {scale, scale * sum of integers} in floats, then the eight tokens' norm factors. The tokens
// of the last eight that do not exist are zeros.
//
// note [blocks of tiles]
// A block of threads takes 16 rows of a matrix a tile, one or two tiles a turn, and 8, 16 or 32 tokens. A slice of its
// rows is one stage: copied into a ring of slots, then shared by eight warps, each with four of the slice's 32 blocks.
// Geometry never changes a result's bits.
#pragma once
#include "ops/streamed_geometry.h"

namespace LANE_NAMESPACE {

constexpr int kTokenGroup = 8;     // tokens of a tensor core's tile
constexpr int kTileRows = 16;      // rows of one
constexpr int kTiledWarps = 8;     // of a block of threads
constexpr int kTiledParts = 8;     // of a slice: part p has blocks p, p + 8, p + 16 and p + 24
constexpr int kTiledMaxRing = 8;   // slots
constexpr int kTiledMaxTurns = 8;  // of a block: rows whose totals it keeps
constexpr int kTiledMaxTokens = 32;

/// Bytes of kTokenGroup quantized vectors, see note [quantized vectors].
LANE_ANYWHERE constexpr int token_group_bytes(int columns, int words) {
  return columns / kBlockColumns * kTokenGroup * (32 * words + 8) + 4 * kTokenGroup;
}
LANE_ANYWHERE constexpr size_t quantized_vectors_bytes(int columns, int words, int tokens) {
  return static_cast<size_t>((tokens + kTokenGroup - 1) / kTokenGroup) *
         static_cast<size_t>(token_group_bytes(columns, words));
}

/// From a slice's row to the next in shared memory: an odd number of 16 bytes, so that eight rows' loads fall on
/// different banks.
LANE_ANYWHERE constexpr int tiled_row_stride(int row_bytes) { return row_bytes / 16 % 2 ? row_bytes : row_bytes + 16; }
LANE_ANYWHERE constexpr int tiled_slot_bytes(int bytes_256, int columns, int tiles) {
  return tiles * kTileRows * tiled_row_stride(slice_row_bytes(bytes_256, slices(columns).full));
}
/// A warp's unpacked codes and scales: of its four blocks of a tile.
constexpr int kTiledScratchBytes = 4 * kTileRows * (kBlockColumns + 8);
/// The turns' totals, and a stage's sums: one set for each of a slice's parts, and twice: one is summed while the next
/// is made.
LANE_ANYWHERE constexpr int tiled_sums_bytes(int tiles, int tokens, int turns) {
  return (2 * kTiledParts + turns) * tiles * kTileRows * tokens * 4;
}

struct TiledGeometry {
  int tiles, tokens;  // template arguments of the kernels: tiles of rows and tokens that a block has at a time
  int grid_x, grid_y, threads, ring, shared_bytes;
};

/// tiled_geometry, with blocks of `block_tokens` tokens and a ring of `least_ring` slots or more.
constexpr TiledGeometry tiled_geometry_of(int block_tokens, int least_ring, int columns, int bytes_256, int rows,
                                          int tokens, bool gated, int multiprocessors, int shared_limit) {
  TiledGeometry g{};
  g.tokens = block_tokens;
  g.tiles = gated || g.tokens > 16 || rows > 8 * kTileRows * multiprocessors ? 2 : 1;
  g.threads = 32 * kTiledWarps;
  g.grid_y = (tokens + g.tokens - 1) / g.tokens;
  const int sharers = g.tokens <= 16 ? 2 : 1;  // blocks of a multiprocessor
  const int tile_rows = gated ? kTileRows : g.tiles * kTileRows, steps = (rows + tile_rows - 1) / tile_rows;
  const int wanted = (sharers * multiprocessors + g.grid_y - 1) / g.grid_y;
  int turns = (steps + wanted - 1) / wanted;
  if (turns > kTiledMaxTurns) turns = kTiledMaxTurns;
  g.grid_x = (steps + turns - 1) / turns;
  const int slot = tiled_slot_bytes(bytes_256, columns, g.tiles), stages = turns * slices(columns).count;
  const int other = kTiledWarps * kTiledScratchBytes + tiled_sums_bytes(g.tiles, g.tokens, turns);
  const int budget = sharers == 2 ? half_of_shared(shared_limit) : shared_limit - 1024;
  g.ring = (budget - other) / slot;
  if (g.ring < 2) g.ring = least_ring;
  if (g.ring > stages) g.ring = stages;
  if (g.ring > kTiledMaxRing) g.ring = kTiledMaxRing;
  g.shared_bytes = g.ring * slot + other;
  return g;
}

/// Whether a multiprocessor has the shared memory that such a block takes.
constexpr bool has_shared(const TiledGeometry& g, int shared_limit) {
  return g.shared_bytes + 8 * kTiledMaxRing <= shared_limit;
}

/// A product of `rows` rows (of the gate, if gated) and `columns` columns, of a format that takes `bytes_256` bytes for
/// 256 weights, with `tokens` vectors. A block has as many tokens as a multiprocessor's shared memory allows; two
/// blocks share it where their rings fit.
constexpr TiledGeometry tiled_geometry(int columns, int bytes_256, int rows, int tokens, bool gated,
                                       int multiprocessors, int shared_limit) {
  const auto with = [&](int block_tokens, int least_ring) {
    return tiled_geometry_of(block_tokens, least_ring, columns, bytes_256, rows, tokens, gated, multiprocessors,
                             shared_limit);
  };
  // With two slots, one is filled again while the other is read.
  int of_block = tokens <= 8 ? 8 : tokens <= 16 ? 16 : kTiledMaxTokens;
  for (; of_block > kTokenGroup; of_block /= 2) {
    const TiledGeometry g = with(of_block, 2);
    if (has_shared(g, shared_limit)) return g;
  }
  const TiledGeometry g = with(of_block, 2);
  return has_shared(g, shared_limit) ? g : with(of_block, 1);
}

}  // namespace LANE_NAMESPACE
