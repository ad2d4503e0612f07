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
//
// note [splits]
// Where rows are few, blocks share them: each has some of the slices, leaves their sums in an array [turns of all
// blocks][slices][tiles][16 rows][tokens], and the last to arrive adds the slices in their order. So a block has fewer
// vectors to read for its rows, of which a small matrix's blocks read more bytes than of weights.
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
constexpr int kTiledCounters = 512;     // of blocks that share rows
constexpr int kTiledStaticBytes = 256;  // barriers and the like, at most

/// Bytes of kTokenGroup quantized vectors, see note [quantized vectors].
LANE_ANYWHERE constexpr int token_group_bytes(int columns, int words) {
  return columns / kBlockColumns * kTokenGroup * (32 * words + 8) + 4 * kTokenGroup;
}
/// Of all tokens' vectors; behind them lie kTiledCounters counters.
LANE_ANYWHERE constexpr size_t tiled_counters_offset(int columns, int words, int tokens) {
  return static_cast<size_t>((tokens + kTokenGroup - 1) / kTokenGroup) *
         static_cast<size_t>(token_group_bytes(columns, words));
}
LANE_ANYWHERE constexpr size_t quantized_vectors_bytes(int columns, int words, int tokens) {
  return tiled_counters_offset(columns, words, tokens) + 4 * kTiledCounters;
}

/// Blocks that make a token's vector, where it has no norm: no more than slices, nor than two a multiprocessor.
LANE_ANYWHERE constexpr int quantize_parts(int columns, int tokens, int multiprocessors) {
  const int most = 2 * multiprocessors / ((tokens + kTokenGroup - 1) / kTokenGroup * kTokenGroup);
  const int parts = most < slices(columns).count ? most : slices(columns).count;
  return parts < 1 ? 1 : parts;
}

/// From a slice's row to the next in shared memory: an odd number of 16 bytes, so that eight rows' loads fall on
/// different banks.
LANE_ANYWHERE constexpr int tiled_row_stride(int row_bytes) { return row_bytes / 16 % 2 ? row_bytes : row_bytes + 16; }
LANE_ANYWHERE constexpr int tiled_slot_bytes(int bytes_256, int columns, int tiles) {
  return tiles * kTileRows * tiled_row_stride(slice_row_bytes(bytes_256, slices(columns).full));
}
/// What blocks of tiles ask of a format: its bytes for 256 weights, and whether a lane of a tensor core takes its codes
/// from the slot as they lie, L::kWordShares.
struct TiledFormat {
  int bytes_256;
  bool word_shares;
};
/// A warp's four blocks of a tile: their scales, and behind them their unpacked codes where they need a place.
constexpr int kTiledScaleBytes = 4 * kTileRows * 8;
LANE_ANYWHERE constexpr int tile_scratch_bytes(bool word_shares) {
  return kTiledScaleBytes + (word_shares ? 0 : 4 * kTileRows * kBlockColumns);
}
/// All of a warp's: of its tiles, and its vectors' scales and sums.
LANE_ANYWHERE constexpr int tiled_scratch_bytes(bool word_shares, int tiles, int tokens) {
  return tiles * tile_scratch_bytes(word_shares) + 4 * tokens * 8;
}
/// A stage's sums, one for each of a slice's parts.
LANE_ANYWHERE constexpr int tiled_stage_floats(int tiles, int tokens) {
  return tiles * kTiledParts * kTileRows * tokens;
}
/// Stages that have their own: of two, warps go on to the next one while slower ones add up this one's. Where codes
/// need a place, the ring needs the room more.
LANE_ANYWHERE constexpr int tiled_sum_stages(bool word_shares) { return word_shares ? 2 : 1; }
/// Beside the ring: scratch, stages' sums, and the totals of so many turns.
LANE_ANYWHERE constexpr int tiled_other_bytes(bool word_shares, int tiles, int tokens, int turns) {
  return kTiledWarps * tiled_scratch_bytes(word_shares, tiles, tokens) +
         4 * (tiled_sum_stages(word_shares) * tiled_stage_floats(tiles, tokens) + turns * tiles * kTileRows * tokens);
}

struct TiledGeometry {
  int tiles, tokens;  // template arguments of the kernels: tiles of rows and tokens that a block has at a time
  int grid_x, grid_y, grid_z, threads, ring, shared_bytes;
  size_t partial_floats;  // 0 where grid_z is 1
};

/// How rows and slices are shared among blocks: `splits` of them have the same rows, for `turns` turns.
struct TiledShare {
  int tiles, splits, turns, grid_x;
};

namespace tiled_detail {

struct Problem {
  int columns;
  TiledFormat format;
  int rows, block_tokens, grid_y;
  bool gated;
  int resident, budget;  // blocks that the chip has room for, of so many bytes of shared memory
  constexpr int slices_of_block(int splits) const { return (slices(columns).count + splits - 1) / splits; }
  constexpr TiledShare share(int tiles, int splits) const {
    const int step_rows = gated ? kTileRows : tiles * kTileRows, steps = (rows + step_rows - 1) / step_rows;
    const int most = resident / (grid_y * splits), wanted = most < 1 ? 1 : most;
    int turns = (steps + wanted - 1) / wanted;
    if (turns > kTiledMaxTurns) turns = kTiledMaxTurns;
    return {tiles, splits, turns, (steps + turns - 1) / turns};
  }
  constexpr int slot_bytes(int tiles) const { return tiled_slot_bytes(format.bytes_256, columns, tiles); }
  constexpr int other_bytes(const TiledShare& s) const {
    return tiled_other_bytes(format.word_shares, s.tiles, block_tokens, s.splits > 1 ? 0 : s.turns);
  }
  /// Slots that the block has room for, no more than its stages.
  constexpr int ring(const TiledShare& s) const {
    const int most = (budget - other_bytes(s)) / slot_bytes(s.tiles), stages = s.turns * slices_of_block(s.splits);
    const int slots = most < stages ? most : stages;
    return slots < kTiledMaxRing ? slots : kTiledMaxRing;
  }
  constexpr bool fits(const TiledShare& s) const { return ring(s) >= 2 || s.turns * slices_of_block(s.splits) == 1; }
  constexpr size_t partial_floats(const TiledShare& s) const {
    return s.splits == 1 ? 0
                         : static_cast<size_t>(s.grid_x * s.turns * slices(columns).count) *
                               static_cast<size_t>(s.tiles * kTileRows * block_tokens);
  }
  /// What it should take, in nanoseconds: measured on an H200. With too few slots a multiprocessor has one block.
  constexpr int64_t time(const TiledShare& s) const {
    constexpr int kStart = 2200, kVectors = 500, kStage = 300, kTile = 200, kTileToken = 100, kJoin = 800;
    const int64_t rounds = (fits(s) ? 1 : 2) * ((s.grid_x * grid_y * s.splits + resident - 1) / resident);
    const int of_stage = kStage + s.tiles * (kTile + block_tokens * kTileToken);
    const int joined = kJoin + s.turns * s.tiles * block_tokens * slices(columns).count;  // a nanosecond each
    return rounds * (kStart + slices_of_block(s.splits) * (kVectors + s.turns * of_stage)) +
           (s.splits > 1 ? joined : 0);
  }
  /// The share that should take the least time. Blocks share rows only where there are few tokens and the chip has room
  /// for all blocks, and not a gated product's: it has many rows, and sums of two matrices.
  constexpr TiledShare best() const {
    const int least_tiles = gated || block_tokens > 16 ? 2 : 1, most = gated || grid_y > 1 ? 1 : slices(columns).count;
    TiledShare best = share(2, 1);
    for (int tiles = least_tiles; tiles <= 2; tiles++) {
      for (int splits = 1; splits <= most; splits++) {
        const TiledShare other = share(tiles, splits);
        const bool can = splits == 1 || (other.grid_x * splits <= resident && other.grid_x <= kTiledCounters);
        if (can && time(other) < time(best)) best = other;
      }
    }
    return best;
  }
};

constexpr Problem problem(int block_tokens, int columns, TiledFormat format, int rows, int tokens, bool gated,
                          int multiprocessors, int shared_limit) {
  const int sharers = block_tokens <= 16 ? 2 : 1;  // blocks of a multiprocessor
  return {columns,
          format,
          rows,
          block_tokens,
          (tokens + block_tokens - 1) / block_tokens,
          gated,
          sharers * multiprocessors,
          sharers == 2 ? (shared_limit + 1024) / 2 - 1024 - kTiledStaticBytes : shared_limit - 1024};
}

/// With a ring of `least_ring` slots or more.
constexpr TiledGeometry geometry(const Problem& p, const TiledShare& share, int least_ring) {
  TiledGeometry g{};
  g.tiles = share.tiles, g.tokens = p.block_tokens;
  g.grid_x = share.grid_x, g.grid_y = p.grid_y, g.grid_z = share.splits;
  g.threads = 32 * kTiledWarps;
  const int stages = share.turns * p.slices_of_block(share.splits);
  g.ring = p.ring(share);
  if (g.ring < 2) g.ring = stages < least_ring ? stages : least_ring;
  g.shared_bytes = g.ring * p.slot_bytes(g.tiles) + p.other_bytes(share);
  g.partial_floats = p.partial_floats(share);
  return g;
}

}  // namespace tiled_detail

/// Whether a multiprocessor has the shared memory that such a block takes.
constexpr bool has_shared(const TiledGeometry& g, int shared_limit) {
  return g.shared_bytes + kTiledStaticBytes <= shared_limit;
}

namespace tiled_detail {

/// `with(tokens of a block, least slots)` of as many tokens as a multiprocessor has the shared memory for. With two
/// slots, one is filled again while the other is read.
template <class With>
constexpr auto most_tokens(int tokens, int shared_limit, With with) {
  int of_block = tokens <= 8 ? 8 : tokens <= 16 ? 16 : kTiledMaxTokens;
  while (of_block > kTokenGroup && !has_shared(with(of_block, 2), shared_limit)) of_block /= 2;
  const auto g = with(of_block, 2);
  return has_shared(g, shared_limit) ? g : with(of_block, 1);
}

}  // namespace tiled_detail

/// A product of `rows` rows (of the gate, if gated) and `columns` columns with `tokens` vectors. A block has as many
/// tokens as a multiprocessor's shared memory allows; two blocks share it where their rings fit.
constexpr TiledGeometry tiled_geometry(int columns, TiledFormat format, int rows, int tokens, bool gated,
                                       int multiprocessors, int shared_limit) {
  const auto with = [&](int block_tokens, int least_ring) {
    const auto problem =
        tiled_detail::problem(block_tokens, columns, format, rows, tokens, gated, multiprocessors, shared_limit);
    return tiled_detail::geometry(problem, problem.best(), least_ring);
  };
  return tiled_detail::most_tokens(tokens, shared_limit, with);
}

/// A matrix of a launch of several.
struct TiledMatrix {
  TiledFormat format;
  int rows;
};
constexpr int kMostTiledMatrices = 3;
/// Of a launch of several products of `columns` columns: grid_x is the sum of `blocks`, ring and partial_floats are
/// each matrix's, shared_bytes what the one that needs most does.
struct TiledProductsGeometry {
  int tiles, tokens, grid_x, grid_y, grid_z, threads, shared_bytes;
  int blocks[kMostTiledMatrices], ring[kMostTiledMatrices];
  size_t partial_floats[kMostTiledMatrices];
};

namespace tiled_detail {

/// The products of a launch, for blocks of so many tokens.
struct Problems {
  Problem of[kMostTiledMatrices];
  int count;

  /// Of matrix i, where all blocks have so many turns.
  constexpr TiledShare share(int i, int tiles, int splits, int turns) const {
    const int steps = (of[i].rows + tiles * kTileRows - 1) / (tiles * kTileRows);
    return {tiles, splits, turns, (steps + turns - 1) / turns};
  }
  constexpr int blocks(int tiles, int splits, int turns) const {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += share(i, tiles, splits, turns).grid_x;
    return sum;
  }
  /// As few as let the chip have room for all blocks.
  constexpr int turns(int tiles, int splits) const {
    int turns = 1;
    while (turns < kTiledMaxTurns && blocks(tiles, splits, turns) * of[0].grid_y * splits > of[0].resident) turns++;
    return turns;
  }
  constexpr bool can_share(int tiles, int splits) const {
    const int all = blocks(tiles, splits, turns(tiles, splits));
    return splits == 1 || (of[0].grid_y == 1 && all * splits <= of[0].resident && all <= kTiledCounters);
  }
  /// What the slowest matrix's blocks should take if all were like them.
  constexpr int64_t time(int tiles, int splits) const {
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
      TiledShare s = share(i, tiles, splits, turns(tiles, splits));
      s.grid_x = blocks(tiles, splits, s.turns);
      const int64_t time = of[i].time(s);
      if (time > most) most = time;
    }
    return most;
  }
  constexpr TiledProductsGeometry geometry(int tiles, int splits, int least_ring) const {
    TiledProductsGeometry all{};
    const int each = turns(tiles, splits);
    for (int i = 0; i < count; i++) {
      const TiledGeometry g = tiled_detail::geometry(of[i], share(i, tiles, splits, each), least_ring);
      all.tiles = g.tiles, all.tokens = g.tokens, all.grid_y = g.grid_y, all.grid_z = g.grid_z, all.threads = g.threads;
      all.grid_x += g.grid_x, all.blocks[i] = g.grid_x, all.ring[i] = g.ring, all.partial_floats[i] = g.partial_floats;
      if (g.shared_bytes > all.shared_bytes) all.shared_bytes = g.shared_bytes;
    }
    return all;
  }
  constexpr TiledProductsGeometry best(int least_ring) const {
    int tiles = 2, splits = 1;
    for (int t = of[0].block_tokens > 16 ? 2 : 1; t <= 2; t++)
      for (int s = 1; s <= slices(of[0].columns).count; s++)
        if (can_share(t, s) && time(t, s) < time(tiles, splits)) tiles = t, splits = s;
    return geometry(tiles, splits, least_ring);
  }
};

}  // namespace tiled_detail

constexpr bool has_shared(const TiledProductsGeometry& g, int shared_limit) {
  return g.shared_bytes + kTiledStaticBytes <= shared_limit;
}
/// `count` products without residuals, of the same vectors, in one launch; chosen as tiled_geometry does.
constexpr TiledProductsGeometry tiled_products_geometry(const TiledMatrix* matrices, int count, int columns, int tokens,
                                                        int multiprocessors, int shared_limit) {
  const auto with = [&](int block_tokens, int least_ring) {
    tiled_detail::Problems problems{{}, count};
    for (int i = 0; i < count; i++)
      problems.of[i] = tiled_detail::problem(block_tokens, columns, matrices[i].format, matrices[i].rows, tokens, false,
                                             multiprocessors, shared_limit);
    return problems.best(least_ring);
  };
  return tiled_detail::most_tokens(tokens, shared_limit, with);
}

}  // namespace LANE_NAMESPACE
