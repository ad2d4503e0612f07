// Runs Schedules in this process, on the host chip or, compiled as CUDA, on a GPU: what an emitted program does,
// without emitting and compiling one. Every buffer is an allocation of its own, filled with NaN before each step: under
// ASan or compute-sanitizer a kernel that leaves its array is caught, and a value read before it is written spoils the
// logits.
#pragma once
#include <memory>
#include <vector>

#include "lane/chip.h"
#include "lane/gguf.h"
#include "lane/plan.h"
#include "lane/weights.h"

namespace lane::test {

/// The chip that schedules run on here: plan for it. Throws std::runtime_error where lanec has no row for the GPU.
const Chip& device_chip();

class ScheduleExecutor {
 public:
  /// `slots` sequences' state, all zero, `state_stride` bytes each: the same in every schedule that runs here.
  ScheduleExecutor(const Checkpoint& checkpoint, const Weights& weights, uint64_t state_stride, int slots);
  ~ScheduleExecutor();

  struct Outcome {
    std::vector<float> logits;  // [logit_rows][vocabulary]
    std::vector<int> next;      // one a logit row
  };
  /// One step over `tokens` ([sequences][rows_per_sequence]); sequence s stands at positions[s] in state slot slots[s].
  Outcome run(const Schedule& schedule, const std::vector<int>& tokens, const std::vector<int>& positions,
              const std::vector<int>& slots);

  /// What the last step left for the next one: the tokens and positions it advanced to.
  const std::vector<int>& next_tokens() const;
  const std::vector<int>& next_positions() const;
  /// The bytes of one slot's state; of links (note [links]) zeros, since a step leaves nothing there for the next one.
  std::vector<uint8_t> state(int slot) const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace lane::test
