// Programs and other weights than those they were compiled with: a fine-tune runs where it is allowed, and weights that
// are no numbers never do.
#include <algorithm>
#include <cstring>

#include "lane/gguf.h"
#include "program.h"
#include "support/golden_case.h"
#include "support/recipe.h"

namespace lane::test {
namespace {

using nlohmann::json;

std::vector<int> ids_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out).at("ids").get<std::vector<int>>() : std::vector<int>{};
}

/// A golden case's checkpoint with other weights, at `path`.
void write_fine_tune(const std::string& name, const std::string& path) {
  json recipe = load_case(name).recipe;
  recipe["seed"] = recipe.at("seed").get<int64_t>() + 1;
  write_checkpoint(recipe, path);
}

TEST(ProgramWeights, AFineTuneGivesItsOwnTokens) {
  const TempFolder folder;
  const std::string tuned = folder / "tuned.gguf";
  write_fine_tune("llama-f32", tuned);
  const std::vector<std::string> run = {"--tokens", "5,6,7", "-n", "8", "--json"};
  std::vector<std::string> allowed = run, interpreted = {LANEC, "run", tuned};
  allowed.insert(allowed.end(), {"-m", tuned, "--allow-weights-change"});
  interpreted.insert(interpreted.end(), run.begin(), run.end());
  const std::vector<int> ids = ids_of(run_program("llama", allowed));
  EXPECT_EQ(ids, ids_of(run_process(interpreted)));
  EXPECT_NE(ids, ids_of(run_program("llama", run)));
}

/// The program's checkpoint with the first rotary factor replaced, at `path`.
void write_with_factor(const std::string& path, float factor) {
  std::string bytes = read_file(program_path("llama3.gguf"));
  const Checkpoint checkpoint = read_checkpoint(program_path("llama3.gguf"));
  std::memcpy(&bytes[checkpoint.tensor("rope_freqs.weight")->offset], &factor, sizeof factor);
  write_file(path, bytes);
}

TEST(ProgramWeights, AFineTuneKeepsTheFactorsOfItsTables) {
  const TempFolder folder;
  const std::string tuned = folder / "tuned.gguf";
  write_fine_tune("llama3-f32", tuned);
  const std::vector<std::string> allowed = {"-m", tuned, "--allow-weights-change", "--tokens", "5", "-n", "1"};
  EXPECT_EQ(run_program("llama3", allowed).code, 0) << run_program("llama3", allowed).err;
  write_with_factor(tuned, 8);
  const Outcome refused = run_program("llama3", allowed);
  EXPECT_EQ(refused.code, 3);
  EXPECT_EQ(refused.out, "");
  for (const std::string& part :
       {tuned, std::string("'rope_freqs.weight'"), std::string("compile this checkpoint again")})
    EXPECT_NE(refused.err.find(part), std::string::npos) << part << " is not in: " << refused.err;
  const Outcome other = run_program("llama3", {"-m", tuned, "--tokens", "5", "-n", "1"});
  EXPECT_NE(other.err.find("--allow-weights-change"), std::string::npos) << other.err;
}

/// A checkpoint, a tensor of it, and the bytes of a NaN there.
struct Planted {
  const char *program, *tensor;
  uint64_t block;     // whose first bytes are overwritten
  size_t at;          // in the block
  const char* bytes;  // as many as a scale or a value has
  uint64_t weight;    // that is refused
};

class NoNumbers : public testing::TestWithParam<Planted> {};

TEST_P(NoNumbers, AreRefusedWithTensorAndIndex) {
  const Planted& planted = GetParam();
  const TempFolder folder;
  const std::string damaged = folder / "damaged.gguf";
  std::string bytes = read_file(program_path(std::string(planted.program) + ".gguf"));
  const Checkpoint checkpoint = read_checkpoint(program_path(std::string(planted.program) + ".gguf"));
  const TensorInfo* tensor = checkpoint.tensor(planted.tensor);
  ASSERT_NE(tensor, nullptr);
  const uint64_t block = planted.block * uint64_t(tensor->format->block_bytes);
  std::memcpy(&bytes[tensor->offset + block + planted.at], planted.bytes, tensor->format->id == 0 ? 4 : 2);
  write_file(damaged, bytes);
  const Outcome outcome =
      run_program(planted.program, {"-m", damaged, "--allow-weights-change", "--tokens", "5", "-n", "1"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : {damaged, fmt::format("'{}'", planted.tensor),
                                  fmt::format("weight {} ", planted.weight), std::string("no finite number")})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in: " << outcome.err;
}

// A matrix as stored, a vector, a quantized matrix and one repacked while it is loaded.
INSTANTIATE_TEST_SUITE_P(Programs, NoNumbers,
                         testing::Values(Planted{"llama", "blk.1.attn_k.weight", 1000, 0, "\0\0\xc0\x7f", 1000},
                                         Planted{"llama", "blk.0.ffn_norm.weight", 3, 0, "\0\0\x80\xff", 3},
                                         Planted{"gemma3", "blk.0.ffn_down.weight", 5, 208, "\x00\x7e", 5 * 256},
                                         Planted{"streamed", "blk.0.ffn_up.weight", 7, 2, "\x00\x7c", 7 * 256}));

}  // namespace
}  // namespace lane::test
