// Programs in less memory than they need: matrices in host memory, copied ahead of use or read there, change no bit.
#include <algorithm>

#include "program.h"
#include "support/files.h"

namespace lane::test {
namespace {

using nlohmann::json;

/// The number that the program's own table has before "// `what`".
int64_t number_of(const std::string& program, const std::string& what) {
  const std::string text = read_file(program_path(program) + ".cu");
  const size_t comment = text.find(",  // " + what + "\n", text.find("kModel = {"));
  EXPECT_NE(comment, std::string::npos) << what;
  return comment == std::string::npos ? 0 : std::stoll(text.substr(text.rfind(' ', comment) + 1));
}

/// Memory in which `percent` of the matrices' bytes have room beside everything else.
int64_t memory_for(const std::string& program, int percent) {
  int64_t bytes = 0;
  for (const char* item : {"carried state, bytes", "arena, bytes", "logits, bytes", "inputs, bytes"})
    bytes += number_of(program, item);
  const int64_t weights = number_of(program, "weights, bytes"),
                fixed = number_of(program, "of them vectors and tables");
  return bytes + fixed + (weights - fixed) * percent / 100;
}

class ProgramResidence : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  TempFolder folder_;
  std::string program_ = std::get<0>(GetParam());
  int percent_ = std::get<1>(GetParam());

  Outcome run(std::vector<std::string> options, bool short_of_memory) const {
    if (short_of_memory) options.insert(options.end(), {"--mem-bytes", std::to_string(memory_for(program_, percent_))});
    return run_program(program_, options);
  }
  std::string logits(const std::string& name, bool short_of_memory, std::vector<std::string> more = {}) const {
    std::vector<std::string> options = {"--tokens", "5,6,7,8,9", "-n", "6", "--dump-logits", folder_ / name};
    options.insert(options.end(), more.begin(), more.end());
    const Outcome outcome = run(options, short_of_memory);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("stay in host memory") != std::string::npos, short_of_memory) << outcome.err;
    return outcome.code == 0 ? read_file(folder_ / name) : "";
  }
};

TEST_P(ProgramResidence, LogitsAreTheSameToTheBit) {
  const std::string expected = logits("all", false);
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(logits("some", true) == expected);
  EXPECT_TRUE(logits("direct", true, {"--no-cuda-graphs"}) == expected);
}

TEST_P(ProgramResidence, ChunksAndBatchesGiveTheSameTokens) {
  std::string lines;
  for (int length : {3, 8, 13, 20}) {
    json prompt = json::array();
    for (int i = 0; i < length; ++i) prompt.push_back(3 + (i * 37 + length * 11) % 250);
    lines += json{{"tokens", prompt}, {"n", 5}}.dump() + "\n";
  }
  write_file(folder_ / "prompts", lines);
  auto ids = [&](bool short_of_memory) {
    const Outcome outcome = run({"--prompts", folder_ / "prompts"}, short_of_memory);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<json> all;
    for (std::string_view rest = outcome.out; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
      all.push_back(json::parse(rest.substr(0, rest.find('\n'))).at("ids"));
    return all;
  };
  const std::vector<json> expected = ids(false);
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_EQ(ids(true), expected);
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramResidence,
                         ::testing::Combine(::testing::Values("llama", "gemma3", "streamed"),
                                            ::testing::Values(75, 50, 25)));

TEST(ProgramResidence, TheLeastMemoryIsEnoughAndOneByteLessIsRefused) {
  const Outcome refused = run_program("llama", {"--tokens", "5,6", "-n", "1", "--mem-bytes", "1000"});
  ASSERT_EQ(refused.code, 5) << refused.err;
  const std::string needs = "Memory: needs ";
  ASSERT_EQ(refused.err.rfind(needs, 0), 0u) << refused.err;
  EXPECT_NE(refused.err.find("copy buffers"), std::string::npos);
  const int64_t least = std::stoll(refused.err.substr(needs.size()));
  EXPECT_LT(least, memory_for("llama", 25));
  auto run = [](int64_t bytes) {
    return run_program("llama", {"--tokens", "5,6", "-n", "1", "--mem-bytes", std::to_string(bytes)}).code;
  };
  EXPECT_EQ(run(least), 0);
  EXPECT_EQ(run(least - 1), 5);
}

}  // namespace
}  // namespace lane::test
