// Launch geometry of chunk attention (ops/attention_chunk.cuh): plain C++, for the planner, the bench and the tests.
#pragma once
#include "ops/attention_split_geometry.h"

namespace LANE_NAMESPACE {

constexpr int kChunkWarps = 4, kChunkQueries = 16 * kChunkWarps;  // queries of a block, 16 a warp
constexpr int kChunkStages = 2;                                   // tiles of the cache in shared memory

LANE_ANYWHERE constexpr bool attention_chunk_fits(int width, int value_width) {
  return attention_split_fits(width, value_width, 1);
}
/// Cache rows of a tile: as many as leave room for two blocks' registers and shared memory.
LANE_ANYWHERE constexpr int chunk_keys(int width, int value_width) {
  return width > 128 || value_width > 128 ? 32 : 64;
}
/// Whether a warp's query fragments stay in registers; else they lie in shared memory, which is slower.
LANE_ANYWHERE constexpr bool chunk_holds_query(int width) { return width <= 128; }
LANE_ANYWHERE constexpr int chunk_query_bytes(int width) {
  return chunk_holds_query(width) ? 0 : (width + 31) / 32 * 4 * 32 * 16;
}
LANE_ANYWHERE constexpr int chunk_stage_bytes(int width, int value_width) {
  return chunk_keys(width, value_width) * (split_key_stride(width) + split_value_stride(value_width));
}
LANE_ANYWHERE constexpr int attention_chunk_shared_bytes(int width, int value_width) {
  return kChunkWarps * chunk_query_bytes(width) + kChunkStages * chunk_stage_bytes(width, value_width);
}

}  // namespace LANE_NAMESPACE
