// Launch geometry of the chained products (ops/chained_products.cuh): plain C++, for the planner and the tests.
//
// Each of the two stages shares its rows among all blocks. A warp has one ring for both: as it reads the last slots of
// the first stage, the next one's rows follow them. So all slots have the size of the larger stage's.
#pragma once
#include "ops/streamed_geometry.h"

namespace LANE_NAMESPACE {

/// The matrices of one stage, of one width; gated: gate and up, which have one shape, as one entry.
struct ChainedStage {
  int columns, words;
  bool gated;
  const StreamedMatrix* matrices;
  int count;
};
struct ChainedGeometry {
  int grid, threads, shared_bytes;
  int slot_rows, ring, slot_bytes;  // of each warp's ring
  int sums;                         // floats of the first stage's sums
  int vector_bytes;                 // of the longer stage's vector
  int first_rows_per_block;
  StreamedShare second[kStreamedMaxMatrices];
};

constexpr int kChainedSlotRows[] = {4, 2};  // the larger copies, where at least kChainedGoodRing of them fit
constexpr int kChainedGoodRing = 3;
/// Shared memory beside the dynamic part: ops/chained_products.cuh.
LANE_ANYWHERE constexpr int chained_static_bytes(int warps) { return warps * (8 * kStreamedMaxRing + 4 + 16); }

namespace chained_detail {

constexpr int most(int a, int b) { return a > b ? a : b; }
constexpr int slot_bytes(const ChainedStage& stage, int slot_rows) {
  int bytes = 0;
  for (int i = 0; i < stage.count; i++)
    bytes = most(bytes, slice_row_bytes(stage.matrices[i].bytes_256, slices(stage.columns).full));
  return bytes * slot_rows;
}
constexpr int vector_bytes(const ChainedStage& stage) {
  const Slices s = slices(stage.columns);
  return streamed_vector_bytes(stage.words, s.full) * s.count;
}
constexpr int sums(const ChainedStage& stage, int rows) {
  return rows * (stage.gated ? 2 : 1) * slices(stage.columns).count;
}
constexpr int most_rows(int rows, int blocks) { return (rows + blocks - 1) / blocks; }

}  // namespace chained_detail

/// As many blocks as multiprocessors, of about half of their shared memory, as streamed_geometry has it.
constexpr ChainedGeometry chained_geometry(const ChainedStage& first, const ChainedStage& second, int multiprocessors,
                                           int shared_limit) {
  namespace detail = chained_detail;
  ChainedGeometry g{};
  const int warps = streamed_warps(second.columns, second.gated);
  g.grid = multiprocessors, g.threads = 32 * warps;
  streamed_detail::share_blocks(second.matrices, second.count, g.grid, g.second);
  int second_sums = 0;
  for (int i = 0; i < second.count; i++) {
    StreamedShare& share = g.second[i];
    share.rows_per_block = second.matrices[i].rows / share.blocks;
    second_sums =
        detail::most(second_sums, detail::sums(second, detail::most_rows(second.matrices[i].rows, share.blocks)));
  }
  const int first_rows = first.matrices[0].rows;
  g.first_rows_per_block = first_rows / g.grid;
  g.sums = detail::sums(first, detail::most_rows(first_rows, g.grid));
  g.vector_bytes = detail::most(detail::vector_bytes(first), detail::vector_bytes(second));
  const int other = g.vector_bytes + 4 * (g.sums + second_sums), half = half_of_shared(shared_limit);
  for (const int rows : kChainedSlotRows) {
    g.slot_rows = rows;
    g.slot_bytes = detail::most(detail::slot_bytes(first, rows), detail::slot_bytes(second, rows));
    g.ring = detail::most(1, (half - other) / (warps * g.slot_bytes));
    if (g.ring >= kChainedGoodRing) break;
  }
  if (g.ring > kStreamedMaxRing) g.ring = kStreamedMaxRing;
  g.shared_bytes = detail::most(half, other + warps * g.ring * g.slot_bytes);
  for (StreamedShare& share : g.second) share.ring = g.ring;
  return g;
}

/// Whether the kernels take these stages: blocks of one size, all of them resident, and rings that hold some of the
/// second stage's rows before it begins.
constexpr bool chained_fits(const ChainedStage& first, const ChainedStage& second, int multiprocessors,
                            int shared_limit) {
  if (!streamed_fits(first.columns, first.gated) || !streamed_fits(second.columns, second.gated)) return false;
  if (streamed_warps(first.columns, first.gated) != streamed_warps(second.columns, second.gated)) return false;
  if (second.count > multiprocessors) return false;
  const ChainedGeometry g = chained_geometry(first, second, multiprocessors, shared_limit);
  return g.ring > 1 && g.shared_bytes + chained_static_bytes(g.threads / 32) <= shared_limit;
}

}  // namespace LANE_NAMESPACE
