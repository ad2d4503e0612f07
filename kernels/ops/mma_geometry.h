// Launch geometry of the products of float weights and a chunk's tokens by warps (ops/mma_product.cuh): plain C++, for
// the planner, the bench and the tests.
//
// A block of four warps has as many rows as tokens, or twice as many; its warps have parts of them, and where the tile
// is too small for four, parts of the columns. The ring fits what the smallest multiprocessor gives a block, so a
// larger one has room for two blocks.
#pragma once
#include "ops/streamed_geometry.h"
#include "ops/wide_geometry.h"

namespace LANE_NAMESPACE {

constexpr int kMmaWarps = 4, kMmaMaxRing = 6, kMmaRingBytes = 96 * 1024;

LANE_ANYWHERE constexpr int mma_warp_rows(int rows) { return rows == 16 ? 16 : rows / 2; }
LANE_ANYWHERE constexpr int mma_warp_tokens(int tokens) { return tokens < 32 ? tokens : 32; }
/// Warps that share a tile of sums, each with other columns.
LANE_ANYWHERE constexpr int mma_parts(int rows, int tokens) {
  return kMmaWarps / (rows / mma_warp_rows(rows) * (tokens / mma_warp_tokens(tokens)));
}
/// Of a stage, which is a step of kWideColumns columns for each part.
LANE_ANYWHERE constexpr int mma_stage_bytes(int rows, int tokens) {
  return mma_parts(rows, tokens) * (rows + 2 * tokens) * 2 * kWideColumns;
}
LANE_ANYWHERE constexpr int mma_ring(int rows, int tokens) {
  const int fitting = kMmaRingBytes / mma_stage_bytes(rows, tokens);
  return fitting < kMmaMaxRing ? fitting : kMmaMaxRing;
}

struct MmaGeometry {
  int rows, tokens;  // of a block, template arguments of the kernels; rows: of both matrices, if gated
  int grid_x, grid_y, threads, shared_bytes;
};

/// Tokens that vectors go by: 16, 32 or kWideTokens. Every product of so many tokens reads vectors made for those.
constexpr int mma_vector_tile(int tokens) { return tokens <= 16 ? 16 : tokens <= 32 ? 32 : kWideTokens; }

/// A product of `rows` rows (of the gate, if gated) with `tokens` vectors: the largest blocks of which most
/// multiprocessors get two, since what blocks read for a product falls with their size.
constexpr MmaGeometry mma_geometry(int rows, int tokens, bool gated, int multiprocessors) {
  MmaGeometry g{};
  const int all = gated ? 2 * rows : rows;
  for (const int size : {64, 32, 16}) {
    if (size > mma_vector_tile(tokens)) continue;
    for (const int times : {2, 1}) {
      if (8 * g.grid_x * g.grid_y >= 9 * multiprocessors) break;
      g.rows = times * size, g.tokens = size;
      g.grid_x = (tokens + size - 1) / size, g.grid_y = (all + g.rows - 1) / g.rows;
    }
  }
  g.threads = 32 * kMmaWarps;
  g.shared_bytes = mma_ring(g.rows, g.tokens) * mma_stage_bytes(g.rows, g.tokens);
  return g;
}

/// Whether the kernels take matrices of so many columns, and split_vectors makes their vectors.
constexpr bool mma_fits(int columns, bool gated, int shared_limit) {
  return streamed_fits(columns, gated) && 4 * columns <= shared_limit - 1024 && kMmaRingBytes <= shared_limit;
}

}  // namespace LANE_NAMESPACE
