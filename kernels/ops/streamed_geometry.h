// Launch geometry of the streamed products (ops/streamed_product.cuh): plain C++, for the planner, the bench and the
// tests.
//
// A block of threads takes a contiguous range of a matrix's rows; its warps split into teams, one a slice
// (layout/slices.h). Shared memory holds each warp's ring of slots, the quantized vector and the slices' sums. Geometry
// never changes a result's bits: each row's sum has one order.
#pragma once
#include "layout/slices.h"

namespace LANE_NAMESPACE {

/// How activations enter: float, or quantized in one or two int8 words.
enum StreamedWords : int { kFloatActivations = 0, kOneWord = 1, kTwoWords = 2 };

constexpr int kStreamedMaxMatrices = 3;
constexpr int kStreamedMaxRing = 12;      // slots of a warp's ring, at most
constexpr int kStreamedMaxNormed = 8192;  // columns of a vector with a norm, at most

LANE_ANYWHERE constexpr int streamed_slot_rows(int words) { return words == kFloatActivations ? 2 : 4; }

/// Warps of a block. Gated: each slice has warps for the gate's rows and warps for the up matrix's.
LANE_ANYWHERE constexpr int streamed_warps(int columns, bool gated) {
  const int wanted = slices(columns).count * (gated ? 2 : 1);
  return wanted <= 16 ? 16 : (wanted + 3) / 4 * 4;
}
LANE_ANYWHERE constexpr int streamed_threads(int columns, bool gated) { return 32 * streamed_warps(columns, gated); }
/// Warps of each slice.
LANE_ANYWHERE constexpr int streamed_team(int columns, bool gated) {
  const int team = streamed_warps(columns, gated) / slices(columns).count;
  return gated ? team / 2 * 2 : team;
}

/// Whether the kernels take matrices of so many columns (formats with blocks of 256 weights want columns % 256 == 0).
/// Slices with several warps have a named barrier each, of 16.
LANE_ANYWHERE constexpr bool streamed_fits(int columns, bool gated) {
  return columns % 128 == 0 && columns > 0 && streamed_warps(columns, gated) <= 32 &&
         (streamed_team(columns, gated) == 1 || slices(columns).count < 16);
}

/// Whether a warp has the registers to make a sum of its pieces of the vector (ops/post_normed_products.cuh).
LANE_ANYWHERE constexpr bool post_norm_fits(int columns, bool gated) {
  const int pieces = slices(columns).full / 4, team = streamed_team(columns, gated);
  return (pieces + team - 1) / team <= 2;
}

/// Bytes of a slice's vector in shared memory: its words, scales and sums; or floats.
LANE_ANYWHERE constexpr int streamed_vector_bytes(int words, int blocks) {
  return words == kFloatActivations ? 128 * blocks : (32 * words + 12) * blocks;
}
/// Static shared memory: barriers, the warps' sums of squares, and the head's choice; what a norm behind a product
/// adds.
LANE_ANYWHERE constexpr int streamed_static_bytes(int warps) { return warps * (8 * kStreamedMaxRing + 4 + 8) + 128; }

/// One matrix of a launch: rows (of the gate, if gated) and the format's bytes for 256 weights.
struct StreamedMatrix {
  int bytes_256, rows;
};
/// Its share of the grid: blocks [0, rows % blocks) take rows_per_block + 1 rows, the others rows_per_block.
struct StreamedShare {
  int blocks, rows_per_block, ring;
};
struct StreamedGeometry {
  int grid, threads, shared_bytes;  // dynamic shared memory
  StreamedShare share[kStreamedMaxMatrices];
};

namespace streamed_detail {

struct Problem {
  int columns, words;
  bool gated;
  Slices s;
  constexpr int matrices() const { return gated ? 2 : 1; }
  constexpr int most_rows(int rows, int blocks) const { return (rows + blocks - 1) / blocks; }
  constexpr int slot_bytes(int bytes_256) const {
    return streamed_slot_rows(words) * slice_row_bytes(bytes_256, s.full);
  }
  /// Shared memory beside the rings.
  constexpr int other_bytes(int rows, int blocks) const {
    return streamed_vector_bytes(words, s.full) * s.count + most_rows(rows, blocks) * matrices() * s.count * 4;
  }
  constexpr int warps() const { return s.count * streamed_team(columns, gated); }
  /// As deep as `budget` bytes allow, and no deeper than a warp's rows ask for.
  constexpr int ring(StreamedMatrix m, int blocks, int budget) const {
    const int team = streamed_team(columns, gated) / matrices(), slot_rows = streamed_slot_rows(words);
    const int warp_rows = (most_rows(m.rows, blocks) + team - 1) / team;
    const int needed = (warp_rows + slot_rows - 1) / slot_rows;
    const int fitting = (budget - other_bytes(m.rows, blocks)) / (warps() * slot_bytes(m.bytes_256));
    const int slots = needed < fitting ? needed : fitting;
    return slots < 1 ? 1 : slots > kStreamedMaxRing ? kStreamedMaxRing : slots;
  }
  constexpr int shared_bytes(StreamedMatrix m, int blocks, int ring_slots) const {
    return warps() * ring_slots * slot_bytes(m.bytes_256) + other_bytes(m.rows, blocks);
  }
};

/// Blocks a matrix, such that the slowest block reads as little as it can: each next block goes to the slowest matrix.
constexpr void share_blocks(const StreamedMatrix* m, int count, int grid, StreamedShare* share) {
  for (int i = 0; i < count; i++) share[i] = {1, 0, 0};
  for (int given = count; given < grid; given++) {
    int slowest = 0;
    long long most = -1;
    for (int i = 0; i < count; i++) {
      const int rows = (m[i].rows + share[i].blocks - 1) / share[i].blocks;
      const long long bytes = static_cast<long long>(rows) * m[i].bytes_256;
      if (bytes > most) most = bytes, slowest = i;
    }
    share[slowest].blocks++;
  }
}

}  // namespace streamed_detail

/// `count` matrices of `columns` columns that read one vector. A block takes about half of a multiprocessor's
/// `shared_limit` bytes, and no less: so two launches share each multiprocessor, one's ring filling while the other
/// computes, and no multiprocessor gets two blocks of one launch. Where the vector and one slot a warp need more, it
/// takes more; where a block's sums do not fit, the grid is a multiple of the multiprocessors.
constexpr StreamedGeometry streamed_geometry(int columns, const StreamedMatrix* m, int count, bool gated, int words,
                                             int multiprocessors, int shared_limit) {
  StreamedGeometry g{};
  const streamed_detail::Problem problem{columns, words, gated, slices(columns)};
  const int half = half_of_shared(shared_limit);
  g.threads = 32 * streamed_warps(columns, gated);
  const int most = shared_limit - streamed_static_bytes(g.threads / 32);
  do {
    g.grid += multiprocessors;
    g.shared_bytes = half;
    streamed_detail::share_blocks(m, count, g.grid, g.share);
    for (int i = 0; i < count; i++) {
      StreamedShare& share = g.share[i];
      share.rows_per_block = m[i].rows / share.blocks;
      share.ring = problem.ring(m[i], share.blocks, half);
      const int bytes = problem.shared_bytes(m[i], share.blocks, share.ring);
      if (bytes > g.shared_bytes) g.shared_bytes = bytes;
    }
  } while (g.shared_bytes > most && g.grid < 16 * multiprocessors);
  return g;
}

/// Whether a multiprocessor has the shared memory that such a block takes: long vectors of floats may not fit.
constexpr bool has_shared(const StreamedGeometry& g, int shared_limit) {
  return g.shared_bytes + streamed_static_bytes(g.threads / 32) <= shared_limit;
}

}  // namespace LANE_NAMESPACE
