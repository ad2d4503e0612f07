// Chunks whose delta rule goes by stretches, run on the device: against the oracle and against the launches kept apart,
// wherever the chunk begins, and with what is decoded after it. Float activations and a float cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/compiled_case.h"
#include "kernels/schedule_executor.h"

namespace lane::test {
namespace {

constexpr int kChunk = 32;
constexpr double kTolerance = 1e-3;  // of each logit

CompiledCase compiled(const std::string& name, const std::vector<std::string>& hold = {}) {
  Options options;
  options.activations = Activations::F32;
  options.stream = false;
  options.ctx = 128;
  options.kv = KvType::F32;
  options.hold = hold;
  return {name,
          {{FormKind::Decode, 1}, {FormKind::Prefill, kChunk}, {FormKind::Prefill, 2 * kChunk}},
          options,
          device_chip()};
}

bool walks_in_stretches(const Schedule& schedule) {
  return std::any_of(schedule.launches.begin(), schedule.launches.end(),
                     [](const Launch& l) { return l.kernel->name == "delta_chunk"; });
}

/// A sequence in one slot of its own, fed token by token or chunk by chunk.
struct Sequence {
  const CompiledCase& model;
  ScheduleExecutor executor;
  int position = 0;

  explicit Sequence(const CompiledCase& model_)
      : model(model_), executor(model.checkpoint, model.weights, model.schedules[0].state_stride, 2) {}

  /// The logits of the last of the tokens.
  std::vector<float> feed(size_t form, const std::vector<int>& ids) {
    const Schedule& schedule = model.schedules[form];
    const std::vector<float> logits = executor.run(schedule, ids, {position}, {1}).logits;
    position += int(ids.size());
    return {logits.end() - ptrdiff_t(schedule.vocabulary), logits.end()};
  }
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++) ASSERT_NEAR(a[i], b[i], kTolerance) << "logit " << i;
}

class DeltaChunk : public testing::TestWithParam<std::string> {};

/// After `first` tokens one by one, a chunk, and the others one by one again: every logit is the oracle's.
void expect_oracle(const CompiledCase& model, int first) {
  Sequence sequence(model);
  const std::vector<int> ids = model.all_ids();
  ASSERT_GT(int(ids.size()), first + kChunk);
  std::vector<float> logits;
  while (sequence.position + 1 < int(ids.size())) {
    const int at = sequence.position, count = at == first ? kChunk : 1;
    logits = sequence.feed(count == 1 ? 0 : 1, {ids.begin() + at, ids.begin() + at + count});
    const TopLogits& top = model.golden.top8[size_t(sequence.position) - 1];
    for (size_t i = 0; i < top.ids.size(); i++)
      ASSERT_NEAR(logits[size_t(top.ids[i])], top.logits[i], kTolerance) << "position " << sequence.position - 1;
  }
}

TEST_P(DeltaChunk, AgreesWithTheOracleWhereverItBegins) {
  const CompiledCase model = compiled(GetParam());
  ASSERT_TRUE(walks_in_stretches(model.schedules[1]));
  for (const int first : {0, 1, 3, 11}) ASSERT_NO_FATAL_FAILURE(expect_oracle(model, first)) << "from " << first;
}

/// A chunk of two stretches, two chunks of one, and the launches kept apart: one carried state, within the bound; the
/// two ways to cut, to the bit.
TEST_P(DeltaChunk, CarriesTheStateOverTheEdgesOfStretchesAndChunks) {
  const CompiledCase model = compiled(GetParam()), held = compiled(GetParam(), {"delta chunk"});
  ASSERT_FALSE(walks_in_stretches(held.schedules[2]));
  const std::vector<int> ids = model.all_ids();
  std::vector<int> tokens;
  for (size_t i = 0; i < 2 * kChunk; i++) tokens.push_back(ids[i * 7 % ids.size()]);
  const std::vector<int> left(tokens.begin(), tokens.begin() + kChunk), right(tokens.begin() + kChunk, tokens.end());
  Sequence whole(model), halves(model), apart(held);
  const auto at_once = whole.feed(2, tokens), row_by_row = apart.feed(2, tokens);
  halves.feed(1, left);
  const auto in_two = halves.feed(1, right);
  EXPECT_EQ(std::memcmp(at_once.data(), in_two.data(), at_once.size() * sizeof(float)), 0);
  EXPECT_EQ(whole.executor.state(1), halves.executor.state(1));
  ASSERT_NO_FATAL_FAILURE(expect_near(at_once, row_by_row));
  for (int step = 0; step < 4; step++)
    ASSERT_NO_FATAL_FAILURE(expect_near(whole.feed(0, {ids[0]}), apart.feed(0, {ids[0]}))) << "step " << step;
}

INSTANTIATE_TEST_SUITE_P(All, DeltaChunk,
                         testing::Values("qwen35-f32", "qwen35-q8_0", "qwen35moe-f32", "qwen3next-f32",
                                         "qwen3next-q4_k_m", "qwen3next_joined-f32"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace lane::test
