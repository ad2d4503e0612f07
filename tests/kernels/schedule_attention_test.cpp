// Schedules whose attention is on tensor cores, run on the device: against the launches kept apart, each sequence of a
// batch against itself alone, and one chunk against several. On the host chip they are planned for one that has bulk
// copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/batch_as_alone.h"
#include "kernels/compiled_case.h"
#include "kernels/schedule_executor.h"

namespace lane::test {
namespace {

/// How far logits may be from those of the launches kept apart, of their greatest size: the order of sums differs, and
/// a key that another order rounds otherwise is another half.
constexpr double kBound = 1e-3;

const Chip& splitting_chip() {
  static const Chip chip = [] {
    Chip c = device_chip();
    if (c.capability == 0) c.bf16_mma = true, c.shared_bytes = 227 << 10, c.multiprocessors = 8;
    return c;
  }();
  return chip;
}

CompiledCase compiled(const std::string& name, const std::vector<CompiledCase::Form>& forms, int64_t context,
                      const std::vector<std::string>& hold = {}) {
  Options options;
  options.activations = Activations::F32;
  options.stream = false;
  options.ctx = context;
  options.hold = hold;
  return {name, forms, options, splitting_chip()};
}

int launches_of(const Schedule& schedule, std::string_view kernel) {
  return int(std::count_if(schedule.launches.begin(), schedule.launches.end(),
                           [&](const Launch& l) { return l.kernel->name == kernel; }));
}
int splits_of(const Schedule& schedule) { return launches_of(schedule, "attention_split"); }

void expect_near(const std::vector<float>& logits, const std::vector<float>& held) {
  double size = 0;
  for (const float logit : held) size = std::max(size, std::abs(double(logit)));
  for (size_t i = 0; i < held.size(); i++) ASSERT_NEAR(logits[i], held[i], kBound * size) << "logit " << i;
}

/// The counters are zero again, for the next launch to find.
void expect_no_arrivals(const Schedule& schedule, const std::vector<uint8_t>& state) {
  const State& arrivals = schedule.states.back();
  ASSERT_EQ(arrivals.name, "arrivals");
  for (uint64_t i = 0; i < arrivals.bytes; i++) ASSERT_EQ(state[size_t(arrivals.offset + i)], 0) << "byte " << i;
}

std::vector<std::string> architectures() {
  std::vector<std::string> names = case_names();
  std::erase_if(names, [](const std::string& name) { return !name.ends_with("-f32"); });
  return names;
}

class TensorAttention : public testing::TestWithParam<std::string> {};

TEST_P(TensorAttention, ComputesWhatTheLaunchesKeptApartDo) {
  const std::vector<CompiledCase::Form> forms = {{FormKind::Decode, 1}};
  const CompiledCase split = compiled(GetParam(), forms, 64),
                     held = compiled(GetParam(), forms, 64, {"split attention"});
  const Schedule &with = split.schedules[0], &without = held.schedules[0];
  ASSERT_EQ(splits_of(without), 0);
  if (splits_of(with) == 0) GTEST_SKIP() << "no attention that can be split";
  ScheduleExecutor one(split.checkpoint, split.weights, with.state_stride, 1);
  ScheduleExecutor other(held.checkpoint, held.weights, without.state_stride, 1);
  const std::vector<int> ids = split.all_ids();
  for (int position = 0; position + 1 < int(ids.size()); position++) {
    const std::vector<int> token = {ids[size_t(position)]};
    const auto a = one.run(with, token, {position}, {0}), b = other.run(without, token, {position}, {0});
    ASSERT_NO_FATAL_FAILURE(expect_near(a.logits, b.logits)) << "position " << position;
    ASSERT_NO_FATAL_FAILURE(expect_no_arrivals(with, one.state(0)));
  }
}

/// A chunk of 16 at once, and by fours: near the launches kept apart, and the same bits.
TEST_P(TensorAttention, ComputesAChunkAsTheLaunchesKeptApartAndAsSmallerChunks) {
  const std::vector<CompiledCase::Form> forms = {{FormKind::Prefill, 16}, {FormKind::Prefill, 4}};
  const CompiledCase model = compiled(GetParam(), forms, 64),
                     held = compiled(GetParam(), forms, 64, {"chunk attention"});
  const Schedule &sixteen = model.schedules[0], &four = model.schedules[1];
  ASSERT_GT(launches_of(sixteen, "attention_chunk"), 0);
  ASSERT_EQ(launches_of(held.schedules[0], "attention_chunk"), 0);
  ScheduleExecutor one(model.checkpoint, model.weights, sixteen.state_stride, 1);
  ScheduleExecutor several(model.checkpoint, model.weights, sixteen.state_stride, 1);
  ScheduleExecutor other(held.checkpoint, held.weights, sixteen.state_stride, 1);
  const std::vector<int> ids = model.all_ids(), chunk(ids.begin(), ids.begin() + 16);
  const auto whole = one.run(sixteen, chunk, {0}, {0}), apart = other.run(held.schedules[0], chunk, {0}, {0});
  ASSERT_NO_FATAL_FAILURE(expect_near(whole.logits, apart.logits));
  ScheduleExecutor::Outcome last;
  for (int at = 0; at < 16; at += 4) last = several.run(four, {chunk.begin() + at, chunk.begin() + at + 4}, {at}, {0});
  const size_t row = size_t(four.vocabulary);
  EXPECT_EQ(std::memcmp(&whole.logits[whole.logits.size() - row], &last.logits[last.logits.size() - row],
                        row * sizeof(float)),
            0);
  EXPECT_EQ(one.state(0), several.state(0));
}

TEST_P(TensorAttention, GivesEachSequenceOfABatchTheBitsItGetsAlone) {
  const CompiledCase model = compiled(GetParam(), {{FormKind::Decode, 1}, {FormKind::Batch, 3}}, 64);
  ASSERT_EQ(splits_of(model.schedules[0]), splits_of(model.schedules[1]));
  expect_batch_as_alone(model);
}

INSTANTIATE_TEST_SUITE_P(All, TensorAttention, testing::ValuesIn(architectures()), [](const auto& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

/// Deep enough for several splits a head, over caches that chunks have filled: the same caches, to the bit.
TEST(TensorAttentionOverSeveralSplits, ComputesWhatTheLaunchesKeptApartDo) {
  constexpr int kChunk = 64, kChunks = 6;
  const std::vector<CompiledCase::Form> forms = {{FormKind::Decode, 1}, {FormKind::Prefill, kChunk}};
  const CompiledCase split = compiled("qwen3-f32", forms, 512),
                     held = compiled("qwen3-f32", forms, 512, {"split attention"});
  ASSERT_GT(splits_of(split.schedules[0]), 0);
  ScheduleExecutor one(split.checkpoint, split.weights, split.schedules[0].state_stride, 1);
  ScheduleExecutor other(held.checkpoint, held.weights, held.schedules[0].state_stride, 1);
  const std::vector<int> ids = split.all_ids();
  std::vector<int> chunk;
  for (size_t i = 0; i < kChunk; i++) chunk.push_back(ids[i * 7 % ids.size()]);
  for (int i = 0; i < kChunks; i++) {
    one.run(split.schedules[1], chunk, {i * kChunk}, {0});
    other.run(held.schedules[1], chunk, {i * kChunk}, {0});
  }
  for (int position = kChunk * kChunks; position < kChunk * kChunks + 3; position++) {
    const auto a = one.run(split.schedules[0], {ids[0]}, {position}, {0});
    const auto b = other.run(held.schedules[0], {ids[0]}, {position}, {0});
    ASSERT_NO_FATAL_FAILURE(expect_near(a.logits, b.logits)) << "position " << position;
    ASSERT_NO_FATAL_FAILURE(expect_no_arrivals(split.schedules[0], one.state(0)));
  }
}

}  // namespace
}  // namespace lane::test
