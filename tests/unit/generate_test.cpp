// The generation loop over an engine whose logits are known.
#include "runtime/generate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "unit/small_vocabulary.h"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

/// After token t comes t + 1; logits say so, and how many positions were fed. Some rows of padding follow, the highest
/// of all.
class CountingEngine {
 public:
  CountingEngine(int32_t tokens, int64_t context)
      : tokens_(tokens), context_(context), row_(static_cast<size_t>(tokens) + 3) {}

  int64_t context() const { return context_; }
  int32_t vocabulary_rows() const { return static_cast<int32_t>(row_.size()); }
  Status prefill(const int32_t* ids, size_t count, LogitsSink* sink) {
    for (size_t i = 0; i < count; ++i) {
      if (Status status = decode(ids[i]); !status.ok()) return status;
      if (sink != nullptr) sink->row(row_.data());
    }
    return {};
  }
  Status decode(int32_t token) {
    if (positions_ == context_) return internal_error("past the context");
    last_ = token;
    ++positions_;
    row_.assign(row_.size(), 100);
    std::fill_n(row_.begin(), tokens_, 0);
    row_[static_cast<size_t>((last_ + 1) % tokens_)] = static_cast<float>(positions_);
    return {};
  }
  Status logits(const float** row, int) { return *row = row_.data(), Status{}; }
  Status greedy_next(int32_t* token, int) { return *token = (last_ + 1) % tokens_, wait(); }
  Status wait() { return waited_ = positions_, Status{}; }
  void run_ahead(int64_t steps) { promised_ = steps; }

  int64_t promised_ = 0, positions_ = 0;
  int64_t waited_ = 0;  // positions that had been fed when it was waited last

 private:
  int32_t tokens_, last_ = -1;
  int64_t context_;
  std::vector<float> row_;
};

/// The exit code of a run in a process of its own, whose output's reader has gone.
int run_without_reader(const Vocabulary& vocabulary, const std::vector<std::string>& args) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    close(STDERR_FILENO);
    RunOptions options;
    parse_command_line(args, kProgram, &options);
    CountingEngine engine(vocabulary.tokens(), 32);
    usleep(100000);  // until the parent has closed its end
    _exit(run_and_print(engine, vocabulary, options, options.prompt_ids, 0).code);
  }
  close(ends[0]);
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class GenerateTest : public testing::Test {
 protected:
  GenerateTest()
      : file_(open_vocabulary(spm_vocabulary({{"\xE2\x96\x81"
                                               "a"},
                                              {"b"},
                                              {"<end_of_turn>", 3},
                                              {"c"}}))) {}

  Status run(const std::vector<std::string>& args, int64_t context = 32) {
    RunOptions options;
    Status status = parse_command_line(args, kProgram, &options);
    std::vector<int32_t> prompt;
    if (status.ok()) status = prompt_ids(*file_, options, context, &prompt);
    CountingEngine engine((*file_).tokens(), context);
    if (status.ok()) status = generate(engine, *file_, options, prompt, nullptr, &result_);
    positions_ = engine.positions_;
    promised_ = engine.promised_;
    waited_ = engine.waited_;
    return status;
  }
  std::vector<float> dumped(const Path& path) {
    const std::string bytes = read_file(path);
    std::vector<float> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), out.size() * 4);
    return out;
  }

  OpenVocabulary file_;
  Generation result_;
  int64_t positions_ = 0, promised_ = 0, waited_ = 0;
};

using Ids = std::vector<int32_t>;

TEST_F(GenerateTest, StopsAfterAnEndTokenAndHidesIt) {
  ASSERT_TRUE(run({"--tokens", "1,259", "-n", "9"}).ok());
  EXPECT_EQ(result_.ids, (Ids{260, 261}));
  EXPECT_EQ(result_.text, "b");
  EXPECT_STREQ(result_.finish_reason, "stop");
  EXPECT_EQ(positions_, 3);
  EXPECT_EQ(promised_, 8);
}

TEST_F(GenerateTest, StopsAtTheLengthAskedFor) {
  ASSERT_TRUE(run({"--tokens", "68", "-n", "3"}).ok());
  EXPECT_EQ(result_.text, "BCD");
  EXPECT_STREQ(result_.finish_reason, "length");
  EXPECT_EQ(positions_, 3);  // the last token is not fed
}

TEST_F(GenerateTest, FollowsForcedIdsPastEndTokens) {
  ASSERT_TRUE(run({"--tokens", "1", "--force", "2,70,261,68"}).ok());
  EXPECT_EQ(result_.ids, (Ids{2, 70, 261, 68}));
  EXPECT_EQ(result_.text, "CA");
  EXPECT_STREQ(result_.finish_reason, "length");
  ASSERT_TRUE(run({"--tokens", "1", "--force", "2,259", "-n", "9"}).ok());
  EXPECT_EQ(result_.ids, (Ids{2, 259, 260, 261}));  // its own choices again after the forced ones
  EXPECT_STREQ(result_.finish_reason, "stop");
}

TEST_F(GenerateTest, DumpsARowForEachPositionFed) {
  TempFolder folder;
  const size_t tokens = static_cast<size_t>((*file_).tokens());
  const std::string path = (folder / "logits").string();
  ASSERT_TRUE(run({"--tokens", "68,69", "-n", "3", "--dump-logits", path}).ok());
  const auto rows = dumped(path);
  ASSERT_EQ(rows.size(), 4 * tokens);
  EXPECT_EQ(rows[69], 1);               // the first prompt position
  EXPECT_EQ(rows[3 * tokens + 72], 4);  // after the second generated token
  ASSERT_TRUE(run({"--tokens", "68,69", "-n", "0", "--dump-logits", path}).ok());
  EXPECT_EQ(dumped(path).size(), 2 * tokens);
  EXPECT_TRUE(result_.ids.empty());
  ASSERT_TRUE(run({"--tokens", "68,69", "-n", "1", "--dump-logits", path}).ok());
  EXPECT_EQ(dumped(path).size(), 2 * tokens);
}

// A time is taken when the device is done, not when it was told.
TEST_F(GenerateTest, TimesWhatIsComputed) {
  ASSERT_TRUE(run({"--tokens", "68,69", "-n", "0"}).ok());
  EXPECT_EQ(waited_, 2);
  ASSERT_TRUE(run({"--tokens", "68,69", "--force", "70"}).ok());
  EXPECT_EQ(waited_, 2);
  ASSERT_TRUE(run({"--tokens", "68,69", "--force", "70,71,72"}).ok());
  EXPECT_EQ(waited_, 4);
}

TEST_F(GenerateTest, LeavesNoDumpBehindAFailure) {
  TempFolder folder;
  const Status status = run({"--tokens", "68", "--dump-logits", (folder / "no").string() + "/logits"});
  EXPECT_EQ(status.code, kExitEnvironment);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(GenerateTest, WritesADeviceAsItIs) {
  ASSERT_TRUE(run({"--tokens", "68", "-n", "2", "--dump-logits", "/dev/null"}).ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(run({"--tokens", "68", "-n", "2", "--dump-logits", "/dev/full"}).code, kExitEnvironment);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(GenerateTest, FillsTheContextAndStops) {
  ASSERT_TRUE(run({"--tokens", "68,69,70", "-n", "9"}, 4).ok());
  EXPECT_EQ(result_.ids.size(), 2u);
  EXPECT_STREQ(result_.finish_reason, "length");
  EXPECT_EQ(positions_, 4);
  ASSERT_TRUE(run({"--tokens", "68,69,70,71"}, 4).ok());
  EXPECT_EQ(result_.ids, (Ids{72}));
}

TEST_F(GenerateTest, RefusesAPromptPastTheContext) {
  const Status status = run({"--tokens", "68,69,70,71,72"}, 4);
  EXPECT_EQ(status.code, kExitUsage);
  EXPECT_EQ(status.message, "Usage: the prompt has 5 tokens; the context has room for 4");
}

TEST_F(GenerateTest, RefusesIdsThatAreNoTokens) {
  EXPECT_EQ(run({"--tokens", "263"}).message, "Usage: --tokens: 263 is no token; the vocabulary has 263, from 0");
  EXPECT_EQ(run({"--tokens", "1", "--force", "1,9999"}).message,
            "Usage: --force: 9999 is no token; the vocabulary has 263, from 0");
}

TEST_F(GenerateTest, AnEmptyPromptIsTheBeginTokenAlone) {
  ASSERT_TRUE(run({"-p", "", "-n", "0"}).ok());
  EXPECT_EQ(result_.prompt_ids, (Ids{1}));
  EXPECT_EQ(run({"-p", "", "--no-bos"}).code, kExitUsage);
}

TEST_F(GenerateTest, TakesAFilesExactBytes) {
  TempFolder folder;
  const std::string path = (folder / "prompt").string();
  write_file(path, "\\n\n");  // a backslash, an n and a newline
  ASSERT_TRUE(run({"-f", path, "-n", "0", "--no-bos"}).ok());
  EXPECT_EQ(result_.prompt_ids, (Ids{3 + 0xE2, 3 + 0x96, 3 + 0x81, 3 + '\\', 3 + 'n', 3 + '\n'}));
  ASSERT_TRUE(run({"-p", "\\n", "-n", "0", "--no-bos"}).ok());
  EXPECT_EQ(result_.prompt_ids.back(), 3 + '\n');
  EXPECT_EQ(run({"-f", path + "s"}).code, kExitEnvironment);
  EXPECT_EQ(run({"-f", folder.path().string()}).code, kExitEnvironment);  // a folder
}

TEST_F(GenerateTest, SamplesNoPadding) {
  ASSERT_TRUE(run({"--tokens", "68", "-n", "30", "--temp", "1000", "--seed", "3"}).ok());
  for (int32_t id : result_.ids) EXPECT_LT(id, (*file_).tokens());
}

TEST_F(GenerateTest, PrintsJsonWhateverTheBytes) {
  // The bytes E2 FF 82 and a quote: no UTF-8 before the quote.
  ASSERT_TRUE(run({"--tokens", "1", "--force", "229,258,133,37,13"}).ok());
  const auto json = nlohmann::json::parse(to_json(result_));
  EXPECT_EQ(json["text"], "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
  EXPECT_EQ(json["prompt_ids"], (Ids{1}));
  EXPECT_EQ(json["ids"], (Ids{229, 258, 133, 37, 13}));
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_TRUE(json["timings"].is_object());
}

TEST_F(GenerateTest, EndsQuietlyWhenTheReaderHasGone) {
  EXPECT_EQ(run_without_reader(*file_, {"--tokens", "68", "-n", "20"}), 0);
}

TEST_F(GenerateTest, DumpsWholeEvenIfTheTextsReaderHasGone) {
  TempFolder folder;
  const std::string path = folder / "logits";
  EXPECT_EQ(run_without_reader(*file_, {"--tokens", "68", "-n", "20", "--dump-logits", path}), 0);
  EXPECT_EQ(dumped(path).size(), 20 * static_cast<size_t>((*file_).tokens()));
}

TEST_F(GenerateTest, ADumpWhoseReaderHasGoneIsNoSuccess) {
  EXPECT_EQ(run_without_reader(*file_, {"--tokens", "68", "-n", "20", "--json", "--dump-logits", "/dev/stdout"}),
            kExitEnvironment);
}

}  // namespace
}  // namespace lane::test
