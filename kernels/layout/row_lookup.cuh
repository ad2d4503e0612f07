// Rows of a repacked matrix as floats: a token's embedding.
#pragma once
#include "base/launch.cuh"
#include "layout/packing.cuh"

namespace LANE_NAMESPACE {

constexpr int kRepackedLookupThreads = 128;

/// out[i][c] = w[ids[i]][c] for i below `count`; w has `rows` rows. A thread decodes a block of 32 columns. Launch:
/// kRepackedLookupThreads threads; grid (ceil(columns / 32 / kRepackedLookupThreads), count).
template <class L>
__global__ void __launch_bounds__(kRepackedLookupThreads)
    repacked_row_lookup(float* out, const uint8_t* w, const int* ids, int count, int columns, int rows) {
  follow_producer();
  const int row_block = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int64_t i = blockIdx.y;
  if (i >= count || row_block >= columns / kBlockColumns) return;
  const Slices s = slices(columns);
  const int slice = row_block / s.full, blocks = slice == s.count - 1 ? s.last : s.full;
  const uint8_t* row = w + slice_offset(L::kBytes256, static_cast<size_t>(rows), s, slice) +
                       static_cast<int64_t>(ids[i]) * slice_row_bytes(L::kBytes256, blocks);
  float values[kBlockColumns];
  L::decode(row, blocks, row_block % s.full, values);
  float* to = out + i * columns + row_block * kBlockColumns;
  LANE_UNROLL
  for (int c = 0; c < kBlockColumns; c++) to[c] = values[c];
}

}  // namespace LANE_NAMESPACE
