// Launch geometry of the products of quantized weights, as stored, and several tokens (ops/mma_int8_tile.cuh): plain
// C++, for the planner and the tests.
#pragma once
#include "layout/slices.h"

namespace LANE_NAMESPACE {

constexpr int kInt8Warps = 8, kInt8Threads = 32 * kInt8Warps;
constexpr int kInt8Rows = 16;  // of a matrix that a block computes
constexpr int kInt8MostTokens = 32;

/// Of a block, which has 8, 16 or 32: a template argument of the kernels.
constexpr int mma_int8_tokens(int tokens) { return tokens <= 8 ? 8 : tokens <= 16 ? 16 : kInt8MostTokens; }

/// Sums of a token in shared memory, with what keeps two tokens' on other banks.
constexpr int kInt8SumsStride = kInt8Rows + 4;
/// A warp's unpacked weights, of any format: four tiles of 16 rows by 32 columns, two scales and two minimums a row.
constexpr int kInt8UnpackedBytes = 4 * kInt8Rows * (32 + 16);
LANE_ANYWHERE constexpr int mma_int8_shared_bytes(int tokens) {
  return kInt8Warps * (kInt8UnpackedBytes + tokens * kInt8SumsStride * 4);
}

}  // namespace LANE_NAMESPACE
