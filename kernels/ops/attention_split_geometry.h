// Launch geometry of split attention (ops/attention_split.cuh): plain C++, for the planner, the bench and the tests.
#pragma once
#include "layout/slices.h"

namespace LANE_NAMESPACE {

constexpr int kSplitTile = 16;   // rows of a warp's tile
constexpr int kSplitRows = 128;  // rows that a split is worth having for
constexpr int kSplitBatch = 16;  // splits whose sums are on their way at once when they are joined

LANE_ANYWHERE constexpr bool attention_split_fits(int width, int value_width, int heads) {
  return width % 8 == 0 && value_width % 8 == 0 && width <= 256 && value_width <= 256 && heads >= 1 && heads <= 8;
}
/// How many query heads share each read of keys and values: a divisor of `heads_per_group`.
LANE_ANYWHERE constexpr int attention_split_heads(int heads_per_group) {
  int heads = heads_per_group < 8 ? heads_per_group : 8;
  while (heads_per_group % heads != 0) heads--;
  return heads;
}
/// Sums of longer values take more registers, and a multiprocessor's are shared with the next launch.
LANE_ANYWHERE constexpr int attention_split_warps(int value_width) { return value_width > 128 ? 4 : 8; }

/// Lanes that read a tile at once, two rows of keys 64 bytes wide or four pairs of rows of values, meet no bank twice:
/// where rows are a multiple of 128 bytes, pieces of 16 bytes change places among eight, in other rows of keys by 4, in
/// pairs of rows of values by 0, 2, 4 or 6; other rows lie further apart.
LANE_ANYWHERE constexpr bool split_swizzles(int width) { return width % 64 == 0; }
LANE_ANYWHERE constexpr int split_key_place(int width, int row, int piece) {
  return split_swizzles(width) ? piece ^ (row & 1) << 2 : piece;
}
LANE_ANYWHERE constexpr int split_value_place(int width, int row, int piece) {
  return split_swizzles(width) ? piece ^ (row >> 1 & 3) << 1 : piece;
}
/// Bytes between a tile's rows.
LANE_ANYWHERE constexpr int split_key_stride(int width) {
  return split_swizzles(width) ? 2 * width : (2 * width + 127) / 128 * 128 + 64;
}
LANE_ANYWHERE constexpr int split_value_stride(int width) {
  return split_swizzles(width) ? 2 * width : (2 * width + 63) / 64 * 64 + 16;
}
LANE_ANYWHERE constexpr int split_tile_bytes(int width, int value_width) {
  return kSplitTile * (split_key_stride(width) + split_value_stride(value_width));
}
/// Tiles of a warp's ring.
LANE_ANYWHERE constexpr int split_ring(int width, int value_width) {
  const int fitting = 80 * 1024 / (attention_split_warps(value_width) * split_tile_bytes(width, value_width));
  return fitting < 1 ? 1 : fitting > 4 ? 4 : fitting;
}

/// A run: [heads][value_width] values, then [heads] greatest scores and [heads] sums of weights.
LANE_ANYWHERE constexpr int attention_run_floats(int heads, int value_width) { return heads * (value_width + 2); }
LANE_ANYWHERE constexpr int attention_split_partial_floats(int splits, int heads, int value_width) {
  return (splits * attention_run_floats(heads, value_width) + 3) / 4 * 4;
}

/// A warp's run of a head in shared memory: pieces of four values, a multiple of eight; the scores and sums of all
/// warps lie behind all of them.
LANE_ANYWHERE constexpr int split_run_pieces(int value_width) { return (value_width / 4 + 7) / 8 * 8; }
/// Shared memory before the rings: query fragments, the token's own row, and its heads or the warps' sums.
LANE_ANYWHERE constexpr int split_fixed_bytes(int width, int value_width, int heads) {
  const int own = 4 * (heads + 1) * width;
  const int sums = attention_split_warps(value_width) * heads * (16 * split_run_pieces(value_width) + 8);
  return ((width + 31) / 32 * 1024 + 2 * (width + value_width) + (own > sums ? own : sums) + 127) / 128 * 128;
}
LANE_ANYWHERE constexpr int attention_split_shared_bytes(int width, int value_width, int heads) {
  return split_fixed_bytes(width, value_width, heads) +
         attention_split_warps(value_width) * split_ring(width, value_width) * split_tile_bytes(width, value_width);
}

/// note [a block a multiprocessor]
/// Each launch of a decode step puts one block on each multiprocessor and takes half of its shared memory, so two
/// launches share it and a third has no room. A launch with fewer blocks, or blocks that end early, would let the next
/// one place two blocks on a multiprocessor, and the slowest multiprocessor decides: that cost 5 to 18 us a launch. So
/// attention fills the grid, and blocks without work wait.
struct AttentionSplitGeometry {
  int splits, grid, threads, shared_bytes;
};
/// The number of splits depends on `parts` (of a sequence) alone, so that bits do not depend on the batch. most_splits:
/// as many as the context is worth, (context + kSplitRows - 1) / kSplitRows.
constexpr AttentionSplitGeometry attention_split_geometry(int width, int value_width, int heads, int parts,
                                                          int sequences, int most_splits, int multiprocessors,
                                                          int shared_limit) {
  AttentionSplitGeometry g{};
  // The last block keeps two floats a split and head where the warps' sums were.
  const int kept = attention_split_warps(value_width) * (value_width + 2) / 2,
            most = most_splits < kept ? most_splits : kept;
  const int even = multiprocessors / parts < 1 ? 1 : multiprocessors / parts;
  g.splits = even < most ? even : most;
  const int blocks = g.splits * parts * sequences;
  g.grid = blocks > multiprocessors ? blocks : multiprocessors;
  g.threads = 32 * attention_split_warps(value_width);
  const int needed = attention_split_shared_bytes(width, value_width, heads), half = half_of_shared(shared_limit);
  g.shared_bytes = needed > half ? needed : half;
  return g;
}

}  // namespace LANE_NAMESPACE
