// Launch geometry of the products of float weights and a chunk's many tokens (ops/wide_product.cuh), and how their
// vectors, and those of ops/mma_product.cuh, lie: plain C++, for the planner, the bench and the tests.
//
// note [split vectors]
// A value is two words of the weights' own type: itself rounded, and what that leaves, rounded. Tokens go by 64. Their
// vectors are, one step of 64 columns after the other, the swizzled tile of the first words and the tile of the second
// (base/warpgroup_mma.cuh); then what the 64 tokens' sums are multiplied with, in floats. The tokens of the last 64
// that do not exist are zeros.
//
// note [columns of a step]
// A slice's row of a repacked float matrix is entries of eight weights, 16 bytes, plane after plane; a row as stored is
// the like in the columns' order. A step is eight entries as they lie, whatever their columns; the vectors' tiles have
// theirs in the same order.
#pragma once
#include <initializer_list>

#include "layout/slices.h"

namespace LANE_NAMESPACE {

constexpr int kWideTokens = 64;     // of a tile
constexpr int kWideGroupRows = 64;  // of four warps
constexpr int kWideColumns = 64;    // of a step
constexpr int kWideTileBytes = 64 * kWideColumns * 2;

LANE_ANYWHERE constexpr int64_t split_tile_bytes(int columns) {
  return int64_t{columns} / kWideColumns * (2 * kWideTileBytes) + 4 * kWideTokens;
}
LANE_ANYWHERE constexpr size_t split_vectors_bytes(int columns, int tokens) {
  return static_cast<size_t>((tokens + kWideTokens - 1) / kWideTokens) * static_cast<size_t>(split_tile_bytes(columns));
}

/// Bytes of a step of `groups` groups of rows and `tiles` tiles of tokens, and how many of them a block has room for.
LANE_ANYWHERE constexpr int wide_slot_bytes(int groups, int tiles) { return (groups + 2 * tiles) * kWideTileBytes; }
LANE_ANYWHERE constexpr int wide_ring(int groups, int tiles) { return 192 * 1024 / wide_slot_bytes(groups, tiles); }

struct WideGeometry {
  int groups, tiles;  // of a block, template arguments of the kernels: 4 and 2, 2 and 1, or 1 and 1
  int grid_x, grid_y, threads, shared_bytes;
};

/// A product of `rows` rows (of the gate, if gated) with `tokens` vectors: the largest blocks of which there are enough
/// for the chip, since what a block reads for a product falls with its size. A block fills a multiprocessor. Shared
/// memory: the ring, from a multiple of 1,024 bytes on.
constexpr WideGeometry wide_geometry(int rows, int tokens, bool gated, int multiprocessors) {
  const int group_rows = gated ? kWideGroupRows / 2 : kWideGroupRows, groups = (rows + group_rows - 1) / group_rows;
  const int tiles = (tokens + kWideTokens - 1) / kWideTokens;
  WideGeometry g{};
  for (const int size : {4, 2, 1}) {
    g.groups = size, g.tiles = size == 4 ? 2 : 1;
    g.grid_x = tiles / g.tiles, g.grid_y = (groups + size - 1) / size;
    if (tiles % g.tiles == 0 && 8 * g.grid_x * g.grid_y >= 7 * multiprocessors) break;
  }
  g.threads = 128 * g.groups;
  g.shared_bytes = wide_ring(g.groups, g.tiles) * wide_slot_bytes(g.groups, g.tiles) + 1024;
  return g;
}

/// Whether a multiprocessor has the shared memory that such a block takes.
constexpr bool has_shared(const WideGeometry& g, int shared_limit) { return g.shared_bytes <= shared_limit; }

/// Whether the blocks keep most multiprocessors busy. Where they do not, smaller ones are faster (ops/mma_product.cuh).
constexpr bool fills(const WideGeometry& g, int multiprocessors) {
  return 4 * g.grid_x * g.grid_y >= 3 * multiprocessors;
}

}  // namespace LANE_NAMESPACE
