// Pass 10: what is allocated, and which matrices leave the device when memory is short.
//
// note [matrices away]
// A matrix that does not fit lies in pinned host memory, in its device layout. Of two buffers on the device, one is
// filled with what the next launch reads while the other is being read: a copy waits for nothing but its buffer. So
// what one launch reads, in any form, leaves together and fills one buffer. Some matrices are not copied but read
// where they lie, over the host link: those of which a step needs a few rows; those so large that two buffers for them
// would take what leaving frees; and, where even the buffers find no room, others from the largest on.
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

/// How a launch reads a matrix that is away.
enum class Away {
  Copied,  // from a buffer, to which it is copied ahead of each use
  Read,    // from host memory
};

/// Matrices that leave the device together; or that have left, copied, and from now on are read in host memory.
struct Leaving {
  std::vector<int> matrices;  // placement indices, ascending
  bool gathered = false;      // every launch that reads them reads a few rows
  bool first = true;          // they leave; else they left before
  Away away = Away::Copied;
  uint64_t bytes = 0;  // that these take, each 256-aligned
  // Once these have left, and those before them: each of the two buffers; and all that weights then take on the device,
  // the buffers included.
  uint64_t buffer_bytes = 0, weight_bytes = 0;
};

/// Bytes a lane needs on the device, item by item.
struct Residence {
  std::vector<uint64_t> weight_offset;  // of each placement in the weights' allocation, nothing away; 256-aligned
  uint64_t weight_bytes = 0;            // all placements on the device
  uint64_t fixed_weight_bytes = 0;      // of those, the ones that never leave, vectors and tables: they lie first
  uint64_t step_bytes = 0;              // of matrices that a step reads whole
  uint64_t state_bytes = 0;             // all sequence slots
  uint64_t arena_bytes = 0;             // the largest form's
  uint64_t logits_bytes = 0, io_bytes = 0;
  std::vector<Leaving> leaving;  // in order: every matrix leaves once
  size_t left = 0;               // how many of `leaving` were taken, for `budget` bytes to be enough
  uint64_t budget = 0;           // memory of Options::mem_bytes, or of a common card with the chip, less the reserve

  /// Bytes on the device after the first `away` of `leaving`.
  uint64_t weights_with(size_t away) const { return away == 0 ? weight_bytes : leaving[away - 1].weight_bytes; }
  uint64_t needed_with(size_t away) const {
    return weights_with(away) + state_bytes + arena_bytes + logits_bytes + io_bytes;
  }
  uint64_t needed() const { return needed_with(left); }
};

/// Matrices leave in that order until the rest fits. Throws MemoryError {needed, budget}, item by item, where even
/// the least that can stay does not.
Residence reside(const std::vector<const Schedule*>& schedules, const std::vector<const Arena*>& arenas,
                 const Weights& weights, const Options& options, const Chip& chip);
/// Throws MemoryError where the carried state of so many sequences of the step alone is more than `budget`.
void check_state_bytes(const Schedule& step, int64_t sequences, const Options& options, const Chip& chip);
void verify(const Residence& residence, const Weights& weights);
std::string to_text(const Residence& residence, const Weights& weights);

}  // namespace lane
