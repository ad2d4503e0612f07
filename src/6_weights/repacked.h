// Which matrices lie repacked on the device.
#pragma once
#include <vector>

#include "lane/weights.h"

namespace lane {

/// Repacks every matrix that all its readers can stream, where the chip and the options ask for it.
void repack_matrices(Weights& weights, const std::vector<const StepGraph*>& graphs, const Options& options);

}  // namespace lane
