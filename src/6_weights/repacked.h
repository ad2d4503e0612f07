// Which matrices lie repacked on the device.
#pragma once
#include <vector>

#include "lane/chip.h"
#include "lane/options.h"
#include "lane/weights.h"

namespace lane {

/// Whether repacked matrices are asked for: streamed products quantize their activations themselves and sum in float,
/// so they are no f32 activations and no unfused quantization.
bool streams(const Options& options, const Chip& chip);

/// Repacks every matrix that all its readers can stream, where the chip and the options ask for it.
void repack_matrices(Weights& weights, const std::vector<const StepGraph*>& graphs, const Options& options);

}  // namespace lane
