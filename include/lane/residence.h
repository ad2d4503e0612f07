// Pass 10: what is allocated, and the order in which matrices leave the device when memory is short.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lane/arena.h"
#include "lane/chip.h"
#include "lane/plan.h"
#include "lane/weights.h"

namespace lane {

/// Left free on the device for the CUDA context's growth and the captured graphs. 0 on the host chip.
constexpr uint64_t kContextReserve = 256ull << 20;

/// Bytes a lane needs on the device, item by item.
struct Residence {
  std::vector<uint64_t> weight_offset;  // of each placement in the weights' allocation, 256-aligned
  uint64_t weight_bytes = 0;            // all placements on the device
  uint64_t fixed_weight_bytes = 0;      // of those, the ones that never leave: vectors and tables
  uint64_t state_bytes = 0;             // all sequence slots
  uint64_t arena_bytes = 0;             // the largest form's
  uint64_t logits_bytes = 0, io_bytes = 0;
  std::vector<int> leaving;  // matrices (placement indices) in the order in which they leave the device
  uint64_t needed() const { return weight_bytes + state_bytes + arena_bytes + logits_bytes + io_bytes; }
};

/// Throws MemoryError {needed, budget} where the sum exceeds the memory left after kContextReserve: of
/// Options::mem_bytes, or of a common card with this chip.
Residence reside(const std::vector<const Schedule*>& schedules, const std::vector<const Arena*>& arenas,
                 const Weights& weights, const Options& options, const Chip& chip);
void verify(const Residence& residence, const Weights& weights);
std::string to_text(const Residence& residence, const Weights& weights);

}  // namespace lane
