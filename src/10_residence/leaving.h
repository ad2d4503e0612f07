// What leaves the device together, and in which order.
#pragma once
#include <vector>

#include "lane/residence.h"

namespace lane {

inline uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// First those read in place by kernels that need a few rows, which costs a step nothing; then the
/// smallest, since the buffers are as large as the largest that is copied; among equals each far from the last, so that
/// copies are spread over the step; then those too large to be copied. At last those that were copied are read in host
/// memory too, the largest first, and the buffers shrink.
std::vector<Leaving> leaving_order(const std::vector<const Schedule*>& schedules, const Weights& weights,
                                   uint64_t weight_bytes);

}  // namespace lane
