// repack: a matrix's rows as stored in the checkpoint become a repacked matrix, on the device, while loading. Every bit
// of the weights' codes, scales and minimums is kept.
//
//   repack<RepackedQ4_K>(out, stored, first_row, row_count, rows, columns)
//   out      the whole repacked matrix of `rows` rows: repacked_bytes(L::kBytes256, rows, columns), 16-aligned
//   stored   rows [first_row, first_row + row_count), as in the file: a matrix may come in several pieces
//   grid     a thread a (row, block of 32 columns): row_count * columns / 32, rounded up to the block of 256
#pragma once
#include "base/device.cuh"
#include "layout/packing.cuh"

namespace LANE_NAMESPACE {

template <class L>
__global__ void repack(uint8_t* out, const uint8_t* stored, int first_row, int row_count, int rows, int columns) {
  const int row_blocks = columns / kBlockColumns;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (task >= static_cast<int64_t>(row_count) * row_blocks) return;
  const int64_t local_row = task / row_blocks;
  const int row_block = static_cast<int>(task % row_blocks);

  const Slices s = slices(columns);
  const int slice = row_block / s.full, first = slice * s.full, block = row_block - first;
  const int blocks = slice == s.count - 1 ? s.last : s.full, bytes = slice_row_bytes(L::kBytes256, blocks);
  uint8_t* row =
      out + slice_offset(L::kBytes256, static_cast<size_t>(rows), s, slice) + (first_row + local_row) * bytes;
  L::pack(row, blocks, block, stored + local_row * (columns / L::kStoredElements) * L::kStoredBytes, first);
  if (block == 0)
    for (int at = L::kBytes256 * blocks / 8; at < bytes; at++) row[at] = 0;
}

}  // namespace LANE_NAMESPACE
