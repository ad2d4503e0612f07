// Which delta rules a chunk's kernels can take.
#pragma once
#include "7_plan/step.h"

namespace lane {

/// Whether ops/delta_chunk.cuh takes this fused delta: one sequence, whole stretches, heads that a block can hold.
bool fits_delta_chunk(const StepOp& delta, int64_t sequences, const Chip& chip);

}  // namespace lane
