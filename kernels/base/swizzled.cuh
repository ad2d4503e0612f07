// Tiles of two-byte values in shared memory, as tensor cores read them without conflicts.
//
// note [swizzled tiles]
// A tile is rows of 64 values of two bytes, 128 bytes a row. Entry e of row r, 16 bytes, lies at entry e ^ (r % 8) of
// its row: so eight rows' equal entries fall on different banks. Eight rows on, the pattern is the same.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

constexpr int kTileRowBytes = 128;  // of a swizzled tile

/// Where entry `entry` of row `row` lies in a tile, see note [swizzled tiles].
__device__ __forceinline__ int swizzled(int row, int entry) { return row * kTileRowBytes + ((entry ^ (row & 7)) << 4); }

/// Columns [16 k, 16 k + 16) of a tile's row, as floats: what the portable products read. Words: HalfWeight or
/// BfloatWeight.
template <class Words>
__device__ __forceinline__ void read_swizzled(const uint8_t* tile, int row, int k, float (&values)[16]) {
  for (int i = 0; i < 8; i++) {
    uint32_t pair;
    memcpy(&pair, tile + swizzled(row, 2 * k + i / 4) + i % 4 * 4, 4);
    const float2 v = Words::pair(pair);
    values[2 * i] = v.x, values[2 * i + 1] = v.y;
  }
}

}  // namespace LANE_NAMESPACE
