// What emitted programs compute, against what llama.cpp computes with the same checkpoints.
#include <cstring>

#include "program.h"
#include "support/golden_comparison.h"

namespace lane::test {
namespace {

struct Tried {
  const char* program;
  const char* golden;
  GoldenBounds bounds = {};
};

std::vector<float> read_floats(const Path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

class ProgramGolden : public ::testing::TestWithParam<Tried> {
 protected:
  GoldenCase golden_ = load_case(GetParam().golden);
  std::vector<std::string> prompt_ = {"--tokens", joined(golden_.prompt_ids)};
  TempFolder folder_;

  std::vector<float> dump(std::vector<std::string> options) {
    const std::string file = folder_ / "logits";
    options.insert(options.end(), {"--dump-logits", file});
    options.insert(options.end(), prompt_.begin(), prompt_.end());
    run_json(GetParam().program, options);
    return read_floats(file);
  }
};

TEST_P(ProgramGolden, LogitsFollowTheGoldenContinuation) {
  const GoldenBounds& bounds = GetParam().bounds;
  const std::vector<float> logits = dump({"--force", joined(golden_.greedy_ids)});
  const GoldenComparison c = compare_logits(golden_, logits, bounds.tie);
  EXPECT_TRUE(c.within(bounds)) << "difference " << c.max_difference << ", mean KL " << c.mean_kl << ", agreed "
                                << c.agreed << " of " << c.positions;
}

TEST_P(ProgramGolden, GreedyTokensAreTheGoldenOnes) {
  std::vector<std::string> options = prompt_;
  options.insert(options.end(), {"-n", std::to_string(golden_.greedy_ids.size())});
  const nlohmann::json answer = run_json(GetParam().program, options);
  EXPECT_GT(compare_answer(golden_, answer.dump(), GetParam().bounds.tie), 0);
  options.push_back("--no-cuda-graphs");
  EXPECT_EQ(run_json(GetParam().program, options).at("ids"), answer.at("ids"));
}

TEST_P(ProgramGolden, ThePromptAloneLeavesARowAPosition) {
  EXPECT_EQ(dump({"-n", "0"}).size(), golden_.prompt_ids.size() * golden_.full_logits.begin()->second.size());
}

INSTANTIATE_TEST_SUITE_P(Architectures, ProgramGolden,
                         ::testing::Values(Tried{"llama", "llama-f32"}, Tried{"qwen2", "qwen2-f32"},
                                           Tried{"qwen3", "qwen3-f32"}, Tried{"gemma3", "gemma3-q4_k_m"},
                                           Tried{"streamed", "llama-q4_k_m", {5e-2, 5e-2, 1e-6}}),
                         [](const auto& tried) { return std::string(tried.param.program); });

TEST(Program, SamplingIsRepeatable) {
  const std::vector<std::string> options = {"--tokens", "5,6,7", "-n", "12", "--temp", "1", "--seed", "42"};
  const nlohmann::json first = run_json("llama", options);
  EXPECT_EQ(first.at("ids"), run_json("llama", options).at("ids"));
  std::vector<std::string> other = options;
  other.back() = "43";
  EXPECT_NE(first.at("ids"), run_json("llama", other).at("ids"));
}

TEST(Program, StopsAtTheContext) {
  const nlohmann::json run = run_json("llama", {"--tokens", "5,6,7", "-n", "50", "--ctx", "8"});
  EXPECT_EQ(run.at("ids").size(), 6u);  // the last one is not fed
  EXPECT_EQ(run.at("finish_reason"), "length");
}

}  // namespace
}  // namespace lane::test
