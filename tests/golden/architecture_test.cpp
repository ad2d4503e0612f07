// Every golden case through the front half: the checkpoint's own program, cut for decode, parsed, lifted and computed
// in double, against what llama.cpp computes with the same weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lane/gguf.h"
#include "lane/graph.h"
#include "lane/logos.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "lane/spec.h"
#include "support/files.h"
#include "support/golden_case.h"

namespace lane::test {
namespace {

constexpr double kBound = 2e-4;  // the goldens print six digits
constexpr double kTie = 1e-3;    // two logits so close may change places
constexpr int64_t kContext = 64;

class ArchitectureGolden : public testing::TestWithParam<std::string> {};

/// Expects the highest logits, all of them where the golden lists all, and the next token.
void expect_position(const GoldenCase& golden, int position, std::span<const double> logits, int next) {
  const TopLogits& top = golden.top8[size_t(position)];
  for (size_t i = 0; i < top.ids.size(); ++i)
    EXPECT_NEAR(logits[size_t(top.ids[i])], top.logits[i], kBound) << "position " << position << ", id " << top.ids[i];
  if (const auto all = golden.full_logits.find(position); all != golden.full_logits.end()) {
    ASSERT_EQ(logits.size(), all->second.size());
    for (size_t id = 0; id < logits.size(); ++id)
      EXPECT_NEAR(logits[id], all->second[id], kBound) << "position " << position << ", id " << id;
  }
  const bool tied = top.logits[0] - top.logits[1] <= kTie;
  EXPECT_TRUE(tied || next == top.ids[0]) << "position " << position << ", id " << next;
}

TEST_P(ArchitectureGolden, AgreesWithThePeer) {
  const GoldenCase golden = load_case(GetParam());
  const TempFolder folder;
  const Checkpoint checkpoint = read_checkpoint(write_case(golden, folder.path()));
  Options options;
  options.ctx = kContext;
  const ModelSpec spec = describe_model(checkpoint, options);
  verify(spec);
  const ModelProgram program = author(spec);
  verify(program);
  const Cut decode = cut(program, FormKind::Decode, 1);
  const StepGraph graph = lift(parse_logos(decode.text));
  verify(graph);
  Reference step(graph, Constants(graph, checkpoint));

  std::vector<int> fed = golden.prompt_ids;
  fed.insert(fed.end(), golden.greedy_ids.begin(), golden.greedy_ids.end() - 1);
  ASSERT_EQ(fed.size(), golden.top8.size());
  for (int position = 0; position < int(fed.size()) && !HasFailure(); ++position) {
    step.run({{"tok", {fed[size_t(position)]}}, {"pos", {position}}});
    expect_position(golden, position, step.value("logits"), step.integers("next")[0]);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& golden) {
  std::string name = golden.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, ArchitectureGolden, testing::ValuesIn(case_names()), test_name);

}  // namespace
}  // namespace lane::test
