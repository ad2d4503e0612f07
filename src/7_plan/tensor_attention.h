// Where attention runs on tensor cores: ops/attention_split.cuh for one token a sequence, ops/attention_chunk.cuh for
// several.
#pragma once
#include "7_plan/step.h"

namespace lane {

/// Whether these kernels can read the caches at all: by asynchronous copies and mma.m16n8k16 of halves, as old as that
/// of bf16.
inline bool can_attend_on_tensor_cores(const Options& options, const Chip& chip) {
  return chip.bf16_mma && options.kv == KvType::F16;
}
/// Whether the kernel takes this attention: as many tokens a sequence, heads that its tiles and the chip's blocks can
/// hold.
bool fits_split_attention(const StepOp& attention, const Chip& chip);
bool fits_chunk_attention(const StepOp& attention, const Chip& chip);

}  // namespace lane
