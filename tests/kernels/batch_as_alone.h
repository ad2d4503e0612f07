// A batch gives each of its sequences the bits that it gets alone.
#pragma once
#include <cstring>

#include "kernels/compiled_case.h"
#include "kernels/schedule_executor.h"

namespace lane::test {

/// The first form is the decode step, the second a batch of three. Three sequences at different positions, in slots out
/// of order: each gets the bits it gets alone.
inline void expect_batch_as_alone(const CompiledCase& model) {
  const Schedule &decode = model.schedules[0], &batch = model.schedules[1];
  ScheduleExecutor alone(model.checkpoint, model.weights, decode.state_stride, 3);
  ScheduleExecutor together(model.checkpoint, model.weights, decode.state_stride, 3);
  const std::vector<int> ids = model.all_ids(), lengths = {5, 0, 19}, slots = {2, 0, 1};
  std::vector<int> tokens;
  for (size_t s = 0; s < 3; s++) {
    for (int p = 0; p < lengths[s]; p++) {
      alone.run(decode, {ids[size_t(p)]}, {p}, {slots[s]});
      together.run(decode, {ids[size_t(p)]}, {p}, {slots[s]});
    }
    tokens.push_back(ids[size_t(lengths[s])]);
  }
  const auto all = together.run(batch, tokens, lengths, slots);
  const size_t row = size_t(batch.vocabulary);
  for (size_t s = 0; s < 3; s++) {
    const auto mine = alone.run(decode, {tokens[s]}, {lengths[s]}, {slots[s]});
    EXPECT_EQ(std::memcmp(mine.logits.data(), &all.logits[s * row], row * sizeof(float)), 0) << "sequence " << s;
    EXPECT_EQ(mine.next[0], all.next[s]) << "sequence " << s;
    EXPECT_EQ(alone.state(slots[s]), together.state(slots[s])) << "sequence " << s;
  }
}

}  // namespace lane::test
