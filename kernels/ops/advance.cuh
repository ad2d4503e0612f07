// The end of a step that does not end with a choice: what the next one reads.
#pragma once
#include "base/device.cuh"
#include "base/launch.cuh"
#include "base/namespace.h"
#include "ops/shown.cuh"

namespace LANE_NAMESPACE {

/// tokens[s] = next[s] and pos[s] += rows_per_sequence: the chosen token is fed, and no host is asked. A
/// step that chooses nothing has no `next` (null), and shows 0. A thread a sequence.
__global__ void advance(int* tokens, int* pos, const int* next, int sequences, int rows_per_sequence, int* turns,
                        int* shown) {
  follow_producer();
  const int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= sequences) return;
  if (next) tokens[s] = next[s];
  pos[s] += rows_per_sequence;
  show(next ? next[s] : 0, s, sequences, turns, shown);
}

}  // namespace LANE_NAMESPACE
