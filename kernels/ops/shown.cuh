// What a step shows the host of its choice, without a copy behind the step: that copy, and the next step's wait for it,
// took most of the time between two steps.
#pragma once
#include "base/device.cuh"
#include "base/namespace.h"

namespace LANE_NAMESPACE {

/// Steps whose choices the host can still read.
[[maybe_unused]] constexpr unsigned kShownSteps = 4;

/// By one thread a sequence, at the end of a step: shown[step][sequence] in pinned host memory, where steps take turns
/// with kShownSteps rows; turns[sequence] counts the steps. The host reads a row once an event behind the step is done.
__device__ __forceinline__ void show(int chosen, int sequence, int sequences, int* turns, int* shown) {
  const unsigned turn = static_cast<unsigned>(turns[sequence]);
  shown[turn % kShownSteps * static_cast<unsigned>(sequences) + static_cast<unsigned>(sequence)] = chosen;
  turns[sequence] = static_cast<int>(turn + 1);
}

}  // namespace LANE_NAMESPACE
