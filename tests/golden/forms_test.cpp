// A model's forms against each other, in double: a prompt in chunks, or a token each of two sequences, leaves the bits
// that decode steps leave. Plain loops keep the order of every sum, so nothing less will do.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lane/gguf.h"
#include "lane/graph.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "lane/spec.h"
#include "support/files.h"
#include "support/golden_case.h"

namespace lane::test {
namespace {

class Forms : public testing::TestWithParam<std::string> {
 protected:
  Forms() : golden_(load_case(GetParam())), checkpoint_(read_checkpoint(write_case(golden_, folder_.path()))) {
    Options options;
    options.ctx = 32;
    program_ = author(describe_model(checkpoint_, options));
  }

  Reference form(FormKind kind, int64_t rows) const {
    StepGraph graph = lift(parse_logos(cut(program_, kind, rows).text));
    verify(graph);
    const Constants constants(graph, checkpoint_);
    return Reference(std::move(graph), constants, {}, 1);
  }

  /// The decode form after the first `count` tokens of `ids`.
  Reference decoded(const std::vector<int>& ids, int count) const {
    Reference step = form(FormKind::Decode, 1);
    for (int pos = 0; pos < count; ++pos) step.run({{"tok", {ids[size_t(pos)]}}, {"pos", {pos}}});
    return step;
  }

  const TempFolder folder_;
  const GoldenCase golden_;
  const Checkpoint checkpoint_;
  ModelProgram program_;
};

std::vector<std::string> carried_names(const StepGraph& graph) {
  std::vector<std::string> names;
  for (const Value& v : graph.values)
    if (v.kind == ValueKind::Carried) names.push_back(v.name);
  return names;
}

/// Copies carried state from one form to another, where its names may have a suffix.
void copy_state(const std::vector<std::string>& names, Reference& from, Reference& to, const std::string& suffix = "") {
  for (const std::string& name : names) std::ranges::copy(from.state(name), to.state(name + suffix).begin());
}

void expect_same(std::span<const double> a, std::span<const double> b, const std::string& what) {
  EXPECT_TRUE(std::ranges::equal(a, b)) << what;
}

TEST_P(Forms, ChunksLeaveWhatDecodeStepsLeave) {
  Reference step = decoded(golden_.prompt_ids, 21);
  const std::vector<std::string> names = carried_names(step.graph());
  Reference previous = decoded(golden_.prompt_ids, 1);
  int pos = 1;
  for (int rows : {4, 16}) {
    Reference chunk = form(FormKind::Prefill, rows);
    copy_state(names, previous, chunk);
    const auto first = golden_.prompt_ids.begin() + pos;
    chunk.run({{"toks", std::vector<int32_t>(first, first + rows)}, {"pos_s0", {pos}}});
    pos += rows;
    previous = std::move(chunk);
  }
  for (const std::string& name : names) expect_same(previous.state(name), step.state(name), name);
  expect_same(previous.value("logits"), step.value("logits"), "logits");
}

TEST_P(Forms, BatchesComputeWhatDecodeStepsCompute) {
  const std::vector<int> prompts[] = {golden_.prompt_ids, golden_.greedy_ids};
  const int lengths[] = {5, 9};
  Reference batch = form(FormKind::Batch, 2);
  StepInputs inputs;
  for (int s = 0; s < 2; ++s) {
    Reference before = decoded(prompts[s], lengths[s]);
    copy_state(carried_names(before.graph()), before, batch, "_s" + std::to_string(s));
    inputs["toks"].push_back(prompts[s][size_t(lengths[s])]);
    inputs["pos_s" + std::to_string(s)] = {lengths[s]};
  }
  batch.run(inputs);
  for (int s = 0; s < 2; ++s) {
    Reference step = decoded(prompts[s], lengths[s] + 1);
    const std::string suffix = "_s" + std::to_string(s);
    for (const std::string& name : carried_names(step.graph()))
      expect_same(batch.state(name + suffix), step.state(name), name + suffix);
    expect_same(batch.value("logits" + suffix), step.value("logits"), "logits" + suffix);
  }
}

TEST_P(Forms, FloatStepsFollowDoubleOnes) {
  StepGraph graph = lift(parse_logos(cut(program_, FormKind::Decode, 1).text));
  const Constants constants(graph, checkpoint_);
  Reference exact(graph, constants, {}, 1);
  FastReference fast(std::move(graph), constants, {}, 2);
  for (int pos = 0; pos < 21 && !HasFailure(); ++pos) {
    const StepInputs inputs = {{"tok", {golden_.prompt_ids[size_t(pos)]}}, {"pos", {pos}}};
    exact.run(inputs);
    fast.run(inputs);
    for (size_t id = 0; id < exact.value("logits").size(); ++id)
      EXPECT_NEAR(exact.value("logits")[id], fast.value("logits")[id], 1e-4) << "position " << pos << ", id " << id;
  }
}

std::vector<std::string> float_cases() {
  std::vector<std::string> names = case_names();
  std::erase_if(names, [](const std::string& name) { return !name.ends_with("-f32"); });
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& golden) {
  std::string name = golden.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Forms, testing::ValuesIn(float_cases()), test_name);

}  // namespace
}  // namespace lane::test
