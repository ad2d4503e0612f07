// How a repacked matrix lies on the device: plain C++, for the planner as well as for kernels.
//
// note [slices]
// A matrix of rows x columns is cut along its columns into slices of at most 32 blocks of 32 columns, as even as whole
// units allow (8 blocks where the columns divide by 256, else 4). Each slice is stored as its own row-major matrix, one
// after the other: the rows that one warp streams are one contiguous range, whatever the grid. Within a slice's row the
// fields lie in planes with one entry a block: a lane owns a block, and a warp's 16-byte loads fall on consecutive
// addresses. A slice's row takes the bytes its blocks take in the file, rounded up to 16.
#pragma once
#include <cstddef>

#include "base/namespace.h"

#ifdef __CUDACC__
#define LANE_ANYWHERE __host__ __device__
#else
#define LANE_ANYWHERE
#endif

namespace LANE_NAMESPACE {

constexpr int kBlockColumns = 32;  // columns a lane owns
constexpr int kSliceBlocks = 32;   // blocks of a slice, at most: one a lane

/// In blocks: `count - 1` slices of `full` and one of `last`.
struct Slices {
  int count, full, last;
};

/// Columns divide by 128, and by 256 where the format's blocks hold 256 weights.
LANE_ANYWHERE constexpr Slices slices(int columns) {
  const int blocks = columns / kBlockColumns, unit = blocks % 8 == 0 ? 8 : 4;
  const int count = (blocks + kSliceBlocks - 1) / kSliceBlocks;
  const int full = (blocks / unit + count - 1) / count * unit;
  return {count, full, blocks - (count - 1) * full};
}

/// Bytes of a slice's row of `blocks` blocks, for a format that takes `bytes_256` bytes for 256 weights in the file.
LANE_ANYWHERE constexpr int slice_row_bytes(int bytes_256, int blocks) {
  return (bytes_256 * blocks / 8 + 15) / 16 * 16;
}

/// Where slice `slice` of a matrix begins.
LANE_ANYWHERE constexpr size_t slice_offset(int bytes_256, size_t rows, Slices s, int slice) {
  return static_cast<size_t>(slice) * rows * static_cast<size_t>(slice_row_bytes(bytes_256, s.full));
}

LANE_ANYWHERE constexpr size_t repacked_bytes(int bytes_256, size_t rows, int columns) {
  const Slices s = slices(columns);
  return slice_offset(bytes_256, rows, s, s.count - 1) + rows * static_cast<size_t>(slice_row_bytes(bytes_256, s.last));
}

/// What one block takes of a multiprocessor's shared memory, of which a block may have `shared_limit` bytes, so that
/// just two blocks fit.
LANE_ANYWHERE constexpr int half_of_shared(int shared_limit) { return (shared_limit / 2 - 2048) / 1024 * 1024 - 1024; }

}  // namespace LANE_NAMESPACE
