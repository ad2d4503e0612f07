// Checkpoints of noise: as large as the models' own in every row, with every weight finite, and something to run.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lane/gguf.h"
#include "process.h"

namespace lane::test {
namespace {

Outcome make(const std::string& shape, const std::string& mix, const std::string& path, int layers, int vocabulary) {
  return run_process({MAKE_NOISE_CHECKPOINT, shape, mix, path, "--layers", std::to_string(layers), "--vocabulary",
                      std::to_string(vocabulary)});
}

struct Spread {
  double mean = 0, deviation = 0;
  bool finite = true;
};

/// Of the tensor's first values.
Spread spread_of(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::vector<double> values(std::min<size_t>(tensor.ne[0] * tensor.ne[1], 1 << 14));
  tensor.format->decode(checkpoint.data(tensor).data(), values.size(), values.data());
  Spread s;
  double squares = 0;
  for (const double v : values) {
    s.finite = s.finite && std::isfinite(v);
    s.mean += v / double(values.size());
    squares += v * v / double(values.size());
  }
  s.deviation = std::sqrt(squares - s.mean * s.mean);
  return s;
}

class Noise : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Noise, EveryMatrixIsSpreadAsATrainedOne) {
  const auto [shape, mix] = GetParam();
  const TempFolder folder;
  const std::string path = folder / "noise.gguf";
  const Outcome made = make(shape, mix, path, 2, 1024);
  ASSERT_EQ(made.code, 0) << made.err;
  const Checkpoint checkpoint = read_checkpoint(path);
  int matrices = 0;
  for (const TensorInfo& tensor : checkpoint.tensors) {
    const Spread s = spread_of(checkpoint, tensor);
    EXPECT_TRUE(s.finite) << tensor.name;
    if (tensor.ne[1] == 1) continue;
    ++matrices;
    EXPECT_NEAR(s.deviation, 0.02, 0.006) << tensor.name << ' ' << tensor.format->name;
    EXPECT_NEAR(s.mean, 0, 0.003) << tensor.name << ' ' << tensor.format->name;
  }
  EXPECT_GT(matrices, 14);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Noise,
                         ::testing::Combine(::testing::Values("gemma3-270m", "qwen2.5-0.5b", "llama3.2-1b",
                                                              "llama3.1-8b"),
                                            ::testing::Values("q4_k_m", "q8_0", "bf16")));

class NoiseRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(NoiseRuns, CompiledAndInterpreted) {
  const TempFolder folder;
  const std::string path = folder / "noise.gguf";
  ASSERT_EQ(make(GetParam(), "q4_k_m", path, 2, 1024).code, 0);
  const Outcome compiled = run_process({LANEC, "compile", path, "-o", folder / "noise.cu", "--batch", "4"});
  EXPECT_EQ(compiled.code, 0) << compiled.err;
  const Outcome ran = run_process({LANEC, "run", path, "--tokens", "300,301,302", "-n", "2", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const int id : nlohmann::json::parse(ran.out).at("ids").get<std::vector<int>>()) EXPECT_LT(id, 1024);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NoiseRuns, ::testing::Values("gemma3-270m", "qwen2.5-0.5b", "llama3.2-1b"));

TEST(NoiseCheckpoint, TheSeedDecides) {
  const TempFolder folder;
  const std::string first = folder / "1.gguf", again = folder / "2.gguf", other = folder / "3.gguf";
  const std::vector<std::string> line = {MAKE_NOISE_CHECKPOINT, "qwen2.5-0.5b", "q8_0",   "", "--layers", "1",
                                         "--vocabulary",        "600",          "--seed", ""};
  auto write = [&](const std::string& path, const std::string& seed) {
    std::vector<std::string> words = line;
    words[3] = path;
    words.back() = seed;
    ASSERT_EQ(run_process(words).code, 0);
  };
  write(first, "7");
  write(again, "7");
  write(other, "8");
  EXPECT_EQ(read_file(first), read_file(again));
  EXPECT_NE(read_file(first), read_file(other));
}

TEST(NoiseCheckpoint, UnknownNamesAreRefusedWithTheKnownOnes) {
  const TempFolder folder;
  const std::string path = folder / "noise.gguf";
  const Outcome shape = make("llama9-1t", "q4_k_m", path, 1, 600), mix = make("llama3.1-8b", "q1", path, 1, 600);
  EXPECT_EQ(shape.code, 2);
  EXPECT_NE(shape.err.find("llama3.1-8b"), std::string::npos) << shape.err;
  EXPECT_EQ(mix.code, 2);
  EXPECT_NE(mix.err.find("q4_k_m, q8_0, bf16"), std::string::npos) << mix.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace lane::test
