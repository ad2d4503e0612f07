// What the parts of a product of a chunk's many tokens (ops/chunk_product.cuh) have in common: the kernel's constants,
// what a block works on, and where that lies in shared memory.
#pragma once
#include "base/fragment_mma.cuh"
#include "layout/half_weights.cuh"
#include "ops/chunk_geometry.h"

namespace LANE_NAMESPACE {

/// Columns: of a part, of which a matrix has kParts, note [parts].
template <class Layout, int ColumnCount, int WordCount, int TokenCount, int GroupCount, int SplitCount, int MatrixCount,
          int PartCount = 1>
struct HalvesShape {
  using L = Layout;
  static constexpr int kParts = PartCount, kAllColumns = ColumnCount;
  static constexpr int kColumns = ColumnCount / PartCount, kWords = WordCount, kTokens = TokenCount,
                       kGroups = GroupCount;
  static_assert(kParts == 1 || chunk_parts_fit(kAllColumns, kParts));
  static constexpr int kSplits = SplitCount, kMatrices = MatrixCount;
  static constexpr int kSums = kTokens / 2;
  static constexpr int kTileTokens = kTokens < kChunkTokens ? kTokens : kChunkTokens, kTiles = kTokens / kTileTokens;
  static constexpr int kFours = kGroups * kSplits, kConsumers = 128 * kFours;  // of warps, threads that multiply
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kSteps = kColumns / kChunkColumns, kBlocks = kChunkColumns / kBlockColumns;
  static constexpr int kWindows = chunk_windows(kColumns);
  static constexpr int kSpan = HalfWeights<L>::kSpan;
  static constexpr int kPieces = kSpan < kChunkColumns ? kBlocks : 1;  // of a step, a factor each
  static constexpr int kOfSpan = kSpan / kChunkColumns / kSplits;      // of a split: steps of a span of 256 columns
  // Whether a step is unpacked while the one before it is multiplied, in registers of its own: where warps are many,
  // others' steps fill the time.
  static constexpr bool kAhead = kFours < 4;
  static constexpr bool kRests = kWords == 2, kLosesBits = kRests && HalfWeights<L>::kLosesBits;
  static constexpr int kStrands = kTokens > 32 && kSpan < 256 ? 2 : 1;                        // note [strands]
  static constexpr int kTileRows = kGroups * kChunkGroupRows, kRows = kTileRows / kMatrices;  // kRows: of a matrix
  static constexpr int kRing = chunk_ring(kWords, kTokens, kGroups, L::kBytes256);
  static constexpr int kWindowSlots = chunk_window_slots(kWords, kTokens, kGroups, L::kBytes256);
  static constexpr int kRowStride = chunk_row_stride(L::kBytes256);
  static constexpr int kVectorBytes = chunk_vector_bytes(kAllColumns, kWords);
};

struct HalvesTask {
  const uint8_t* matrices[2];
  const uint8_t* x;
  int rows, tokens, first_row;  // the last: the block's
  float* partial = nullptr;     // [blocks of threads][parts][sums][threads], of several parts
  int* arrived = nullptr;
};

/// A tile row of a block of threads: of a gated product's sixteen rows, eight are the gate's and eight the up matrix's,
/// so that a lane has both of a result.
template <class S>
__device__ __forceinline__ int row_of_tile(int tile_row) {
  return S::kMatrices == 1 ? tile_row : tile_row / 16 * 8 + tile_row % 8;
}

/// Where everything lies in the block's shared memory.
template <class S>
struct HalvesShared {
  uint8_t* base;

  /// [tokens] rows of a swizzled tile, and of two byte tiles.
  __device__ __forceinline__ TileAt halves(int step) const {
    return {base, step % S::kRing * chunk_slot_bytes(S::kWords, S::kTokens)};
  }
  __device__ __forceinline__ TileAt rests(int step) const { return halves(step).behind(S::kTokens * kTileRowBytes); }
  __device__ __forceinline__ TileAt coarse(int step) const {
    return rests(step).behind(S::kTokens * kByteTileRowBytes);
  }
  __device__ __forceinline__ TileAt sums(int step) const {
    return halves(step).behind(S::kWords * S::kTokens * kTileRowBytes);
  }
  /// A row's window, like a row of a slice of so many blocks.
  __device__ __forceinline__ uint8_t* row(int window, int tile_row) const {
    return base + S::kRing * chunk_slot_bytes(S::kWords, S::kTokens) +
           (window % S::kWindowSlots * S::kTileRows + tile_row) * S::kRowStride;
  }
  /// What the tokens' results are to be multiplied by.
  __device__ __forceinline__ float* factors() const {
    return reinterpret_cast<float*>(row(S::kWindowSlots - 1, S::kTileRows));
  }
  /// [tokens] rows of results, once nothing else is needed any more: from one to the next so many floats that lanes
  /// which have a row each of four pairs of tokens meet no bank twice.
  static constexpr int kResultStride = S::kRows + 4;
  __device__ __forceinline__ float* results() const { return reinterpret_cast<float*>(base); }
  static_assert(4 * S::kTokens * kResultStride <= S::kRing * chunk_slot_bytes(S::kWords, S::kTokens));
};

/// A window of the matrix: its slice, and its first block there.
template <class S>
struct HalvesWindow {
  int slice, first;

  __device__ __forceinline__ explicit HalvesWindow(int window) {
    constexpr int kOfSlice = slice_windows(S::kSlices.full);
    slice = window / kOfSlice, first = window % kOfSlice * kChunkWindowBlocks;
  }
  __device__ __forceinline__ int of_slice() const {
    return slice == S::kSlices.count - 1 ? S::kSlices.last : S::kSlices.full;
  }
  __device__ __forceinline__ int blocks() const {
    constexpr bool kWhole = S::kSlices.full % kChunkWindowBlocks == 0 && S::kSlices.last % kChunkWindowBlocks == 0;
    return kWhole ? kChunkWindowBlocks : min(kChunkWindowBlocks, of_slice() - first);
  }
};

/// Where a step's weights lie: two blocks of a window.
template <class S>
struct HalvesStep {
  int window, first, blocks;
  __device__ __forceinline__ HalvesStep(int window_, int first_, int blocks_)
      : window(window_), first(first_), blocks(blocks_) {}
  __device__ __forceinline__ explicit HalvesStep(int step) {
    const WindowBlock at = window_block(S::kSlices, S::kBlocks * step);
    window = at.window, first = at.at, blocks = HalvesWindow<S>(window).blocks();
  }
  __device__ __forceinline__ bool ends_window() const { return first + S::kBlocks == blocks; }
};

}  // namespace LANE_NAMESPACE
