// Launch geometry of the delta rule over chunks (ops/delta_chunk.cuh): plain C++, for the planner and the tests.
#pragma once
#include <stddef.h>

#include "base/namespace.h"

namespace LANE_NAMESPACE {

constexpr int kStretch = 32;             // tokens that are worked on together
constexpr int kDeltaChunkThreads = 256;  // of either kernel
constexpr int kDeltaValues = 32;         // values of a head that a block keeps
constexpr int kDeltaPadding = 4;         // floats behind a row in shared memory, so that rows start in other banks

/// Floats of a stretch's factors in one head.
constexpr int kDeltaFactors = 2 * kStretch * kStretch + 2 * kStretch;

constexpr bool fits_delta_chunk(int rows, int width) { return rows % kStretch == 0 && width % kDeltaValues == 0; }

/// Dynamic shared memory of delta_factors: slabs of keys and queries, and two matrices.
constexpr size_t kDeltaFactorsSharedBytes =
    sizeof(float) * (2 * kStretch * (32 + kDeltaPadding) + 2 * kStretch * kStretch);
/// Of delta_chunk: keys, queries and state, three arrays of a value a token, and the factors.
constexpr size_t delta_chunk_shared_bytes(int width) {
  return sizeof(float) * (size_t(2 * kStretch + kDeltaValues) * size_t(width + kDeltaPadding) +
                          3 * kStretch * kDeltaValues + kDeltaFactors);
}

}  // namespace LANE_NAMESPACE
