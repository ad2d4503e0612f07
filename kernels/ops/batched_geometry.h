// Launch geometry of the products of float weights and several tokens (ops/batched_product.cuh), and how their vectors
// lie: plain C++, for the planner, the bench and the tests.
//
// note [float vectors]
// Tokens go by eight. Eight tokens' vectors are, one slice after the other, the eight tokens' slice of it, each in
// eight planes of four columns with one entry a block, as ops/streamed_vector.cuh says; the last slice takes as many
// bytes as the others. Then the eight tokens' norm factors. The tokens of the last eight that do not exist are zeros.
//
// note [rows of a warp]
// A warp has four rows at a time for eight tokens: 32 sums, as many as lanes. A gated product takes two rows of the
// gate and the same two of the up matrix. A block's warps take such steps in turn; blocks have contiguous ranges of
// them. Geometry never changes a result's bits.
#pragma once
#include "ops/tiled_geometry.h"

namespace LANE_NAMESPACE {

constexpr int kBatchedWarps = 8;    // of a block of threads
constexpr int kBatchedRows = 4;     // of a step, of both matrices together
constexpr int kBatchedMaxRing = 4;  // slots of a warp's ring

/// Bytes of eight tokens' slice of their vectors, and of their vectors, see note [float vectors].
LANE_ANYWHERE constexpr int float_slice_bytes(int columns) {
  return kTokenGroup * streamed_vector_bytes(kFloatActivations, slices(columns).full);
}
LANE_ANYWHERE constexpr int float_group_bytes(int columns) {
  return slices(columns).count * float_slice_bytes(columns) + 4 * kTokenGroup;
}
LANE_ANYWHERE constexpr size_t float_vectors_bytes(int columns, int tokens) {
  return static_cast<size_t>((tokens + kTokenGroup - 1) / kTokenGroup) *
         static_cast<size_t>(float_group_bytes(columns));
}

LANE_ANYWHERE constexpr int batched_slot_bytes(int bytes_256, int columns) {
  return kBatchedRows * slice_row_bytes(bytes_256, slices(columns).full);
}
/// Static shared memory: the barriers of the rings and of the vectors' two buffers.
LANE_ANYWHERE constexpr int batched_static_bytes() { return 8 * (kBatchedWarps * kBatchedMaxRing + 2); }

struct BatchedGeometry {
  int grid_x, grid_y, threads, ring, shared_bytes;
};

/// A product of `rows` rows (of the gate, if gated) and `columns` columns, of a float format that takes `bytes_256`
/// bytes for 256 weights, with `tokens` vectors. A block fills a multiprocessor. All groups of tokens are at work on
/// the same rows at a time, so the L2 brings a row once.
constexpr BatchedGeometry batched_geometry(int columns, int bytes_256, int rows, int tokens, bool gated,
                                           int multiprocessors, int shared_limit) {
  BatchedGeometry g{};
  g.threads = 32 * kBatchedWarps;
  g.grid_y = (tokens + kTokenGroup - 1) / kTokenGroup;
  const int step_rows = gated ? kBatchedRows / 2 : kBatchedRows, steps = (rows + step_rows - 1) / step_rows;
  const int wanted = multiprocessors / g.grid_y;
  const int slot = batched_slot_bytes(bytes_256, columns), least = 2 * float_slice_bytes(columns);
  const int limit = shared_limit - batched_static_bytes();
  int block_steps = 0, other = 0;
  for (int blocks = wanted < 1 ? 1 : wanted;; blocks *= 2) {
    g.grid_x = blocks < steps ? blocks : steps;
    block_steps = (steps + g.grid_x - 1) / g.grid_x;
    other = least + block_steps * 32 * 4;  // and the sums
    if (other + 2 * kBatchedWarps * slot <= limit || g.grid_x == steps) break;
  }
  const int needed = (block_steps + kBatchedWarps - 1) / kBatchedWarps * slices(columns).count;
  g.ring = (limit - other) / (kBatchedWarps * slot);
  if (g.ring > needed) g.ring = needed;
  if (g.ring > kBatchedMaxRing) g.ring = kBatchedMaxRing;
  if (g.ring < 1) g.ring = 1;
  g.shared_bytes = g.ring * kBatchedWarps * slot + other;
  return g;
}

/// Whether a multiprocessor has the shared memory that such a block takes.
constexpr bool has_shared(const BatchedGeometry& g, int shared_limit) {
  return g.shared_bytes + batched_static_bytes() <= shared_limit;
}

}  // namespace LANE_NAMESPACE
