// Many prompts over an engine whose logits are known: requests, slots, answers in order.
#include "runtime/batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "support/files.h"
#include "unit/small_vocabulary.h"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;
using Json = nlohmann::json;

/// After token t comes t + 1, in each of a few slots; keeps what it was asked to do. Steps run ahead as an emitted
/// program's do, and what may not be asked meanwhile is refused.
class CountingSlots {
 public:
  CountingSlots(int32_t tokens, int64_t context, int slots)
      : tokens_(tokens), context_(context), slots_(static_cast<size_t>(slots)) {}

  int64_t context() const { return context_; }
  int sequences() const { return static_cast<int>(slots_.size()); }
  int32_t vocabulary_rows() const { return tokens_; }
  Status start(int slot) {
    if (ahead_ > 0) return internal_error("a new sequence while steps are ahead");
    return current_ = slot, slots_[static_cast<size_t>(slot)] = {}, Status{};
  }
  Status prefill(const int32_t* ids, size_t count, LogitsSink* sink) {
    for (size_t i = 0; i < count; ++i) {
      const Fed fed{current_, ids[i], slots_[static_cast<size_t>(current_)].positions};
      if (Status status = feed(&fed, 1); !status.ok()) return status;
      const float* row = nullptr;
      logits(&row, 0);
      if (sink != nullptr) sink->row(row);
    }
    return {};
  }
  Status step(const Fed* fed, size_t count) {
    widths_.push_back(count);
    if (ahead_ > 0) {
      if (Status status = take_ahead(fed, count); !status.ok()) return status;
    }
    return feed(fed, count);
  }
  void run_ahead(int64_t steps) { promised_ = steps; }
  int ahead() const { return ahead_; }
  Status wait() { return {}; }
  Status logits(const float** row, int r) {
    if (ahead_ > 0) return internal_error("logits while steps are ahead");
    row_.assign(static_cast<size_t>(tokens_), 0);
    row_[static_cast<size_t>(next(r))] = 50;
    *row = row_.data();
    return {};
  }
  Status greedy_next(int32_t* token, int r) {
    ahead_ = std::max(ahead_, static_cast<int>(std::min<int64_t>(promised_, 2)));
    most_ahead_ = std::max(most_ahead_, ahead_);
    for (const Fed& f : rows_) {
      if (f.position + ahead_ >= context_) return internal_error("steps ahead past the context");
    }
    return *token = next(r), Status{};
  }

  std::vector<size_t> widths_;  // sequences of each step
  int most_ahead_ = 0;

 private:
  struct Slot {
    int32_t last = -1;
    int64_t positions = 0;
  };

  Status feed(const Fed* fed, size_t count) {
    rows_.assign(fed, fed + count);
    for (const Fed& f : rows_) {
      Slot& slot = slots_[static_cast<size_t>(f.slot)];
      if (f.position != slot.positions || f.position >= context_) return internal_error("at another position");
      slot = {f.token, f.position + 1};
    }
    return {};
  }
  /// A step that has run already took the latest step's sequences and the ids that it chose.
  Status take_ahead(const Fed* fed, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto same = [&](const Fed& f) { return f.slot == fed[i].slot; };
      const auto row = std::find_if(rows_.begin(), rows_.end(), same);
      if (row == rows_.end() || next(static_cast<int>(row - rows_.begin())) != fed[i].token)
        return internal_error("another step than the one ahead");
    }
    --ahead_;
    return {};
  }

  int32_t next(int r) const { return (slots_[static_cast<size_t>(rows_.at(size_t(r)).slot)].last + 1) % tokens_; }

  int32_t tokens_;
  int64_t context_;
  int current_ = 0, ahead_ = 0;
  int64_t promised_ = 0;
  std::vector<Slot> slots_;
  std::vector<Fed> rows_;
  std::vector<float> row_;
};

class BatchTest : public testing::Test {
 protected:
  BatchTest() : file_(open_vocabulary(spm_vocabulary({{"a"}, {"b"}, {"<end_of_turn>", 3}, {"c"}}))) {}

  /// The answers to `lines`, with the options `args` for all.
  std::vector<Json> answer(const std::string& lines, int slots, std::vector<std::string> args = {},
                           int64_t context = 32) {
    write_file(folder_ / "prompts", lines);
    args.insert(args.end(), {"--prompts", folder_ / "prompts"});
    RunOptions options;
    Status status = parse_command_line(args, kProgram, &options);
    CountingSlots engine((*file_).tokens(), context, slots);
    char* text = nullptr;
    size_t bytes = 0;
    std::FILE* out = ::open_memstream(&text, &bytes);
    if (status.ok()) status = answer_prompts(engine, *file_, options, 0, out, &(totals_ = {}));
    std::fclose(out);
    status_ = status;
    widths_ = engine.widths_;
    most_ahead_ = engine.most_ahead_;
    std::vector<Json> answers;
    for (std::string_view rest(text, bytes); !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
      answers.push_back(Json::parse(rest.substr(0, rest.find('\n'))));
    }
    std::free(text);
    return answers;
  }
  Json answer_to(const std::string& line) {
    const std::vector<Json> answers = answer(line + "\n", 1);
    return answers.size() == 1 ? answers[0] : Json();
  }

  OpenVocabulary file_;
  TempFolder folder_;
  Status status_;
  Totals totals_;
  std::vector<size_t> widths_;
  int most_ahead_ = 0;
};

using Ids = std::vector<int32_t>;

TEST_F(BatchTest, AnswersInTheOrderOfTheLines) {
  const auto answers = answer(
      "{\"tokens\": [10, 20], \"n\": 5}\n{\"tokens\": [30], \"n\": 1}\n{\"tokens\": [40, 41, 42], \"n\": 3}\n"
      "{\"n\": 2, \"tokens\": [50]}",
      2);
  ASSERT_TRUE(status_.ok()) << status_.message;
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[0]["prompt_ids"], (Ids{10, 20}));
  EXPECT_EQ(answers[0]["ids"], (Ids{21, 22, 23, 24, 25}));
  EXPECT_EQ(answers[1]["ids"], (Ids{31}));
  EXPECT_EQ(answers[2]["ids"], (Ids{43, 44, 45}));
  EXPECT_EQ(answers[3]["ids"], (Ids{51, 52}));
  EXPECT_EQ(answers[3]["finish_reason"], "length");
  // The second line ends with its prompt, the third takes its slot, then the fourth the third's.
  EXPECT_EQ(widths_, (std::vector<size_t>{2, 2, 2, 1}));
  EXPECT_EQ(totals_.answers, 4u);
  EXPECT_EQ(totals_.tokens, 11u);
}

// The first prompt reaches an end token while steps are ahead: the second takes them alone, and only then does the
// third get the free slot.
TEST_F(BatchTest, RunsAheadWhereAllAreGreedy) {
  const std::string lines =
      "{\"tokens\": [258], \"n\": 20}\n{\"tokens\": [10], \"n\": 8}\n{\"tokens\": [50], \"n\": 3}\n";
  const auto answers = answer(lines, 2);
  ASSERT_TRUE(status_.ok()) << status_.message;
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["ids"], (Ids{259, 260, 261}));
  EXPECT_EQ(answers[0]["finish_reason"], "stop");
  EXPECT_EQ(answers[1]["ids"], (Ids{11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(answers[2]["ids"], (Ids{51, 52, 53}));
  EXPECT_EQ(widths_, (std::vector<size_t>{2, 2, 1, 1, 2, 2, 1}));
  EXPECT_EQ(most_ahead_, 2);
}

TEST_F(BatchTest, RunsNotAheadOfASample) {
  answer("{\"tokens\": [10], \"n\": 8}\n{\"tokens\": [50], \"n\": 8, \"temp\": 1}\n", 2);
  ASSERT_TRUE(status_.ok()) << status_.message;
  EXPECT_EQ(most_ahead_, 0);
}

TEST_F(BatchTest, GivesTheSameInAnyNumberOfSlots) {
  std::string lines;
  for (int i = 0; i < 9; ++i) {
    lines += "{\"tokens\": [" + std::to_string(10 * i + 3) + "], \"n\": " + std::to_string(i % 4) +
             ", \"temp\": 30, \"seed\": " + std::to_string(i) + "}\n";
  }
  const auto ids = [&](int slots) {
    std::vector<Json> found;
    for (const Json& answer : answer(lines, slots)) found.push_back(answer["ids"]);
    return found;
  };
  const std::vector<Json> alone = ids(1);
  ASSERT_EQ(alone.size(), 9u);
  for (int slots : {2, 3, 9, 20}) EXPECT_EQ(ids(slots), alone) << slots;
}

TEST_F(BatchTest, ABadLineIsAnsweredInItsPlace) {
  const auto answers =
      answer("{\"tokens\": [20], \"n\": 2}\n{\"tokens\": \n\n  \n{\"tokens\": [3], \"n\": 1}\nnonsense\n", 2);
  ASSERT_TRUE(status_.ok()) << status_.message;
  ASSERT_EQ(answers.size(), 4u);  // blank lines ask nothing
  EXPECT_EQ(answers[0]["ids"], (Ids{21, 22}));
  EXPECT_TRUE(answers[1].contains("error"));
  EXPECT_EQ(answers[2]["ids"], (Ids{4}));
  EXPECT_TRUE(answers[3].contains("error"));
  EXPECT_EQ(totals_.refused, 2u);
}

// Editors that write a byte order mark write it once, before the first line.
TEST_F(BatchTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const auto answers = answer("\xEF\xBB\xBF{\"tokens\": [20], \"n\": 2}\n\xEF\xBB\xBF{\"tokens\": [3], \"n\": 1}\n", 2);
  ASSERT_TRUE(status_.ok()) << status_.message;
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["ids"], (Ids{21, 22}));
  EXPECT_TRUE(answers[1].contains("error"));
}

TEST_F(BatchTest, RefusesByLine) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"[]", "expected '{'"},
      {"{}", "no prompt given"},
      {"{\"n\": 3}", "no prompt given"},
      {"{\"prompt\": \"a\", \"tokens\": [1]}", "prompt and tokens: expected one of them"},
      {"{\"prompt\": \"a\", \"prompt\": \"b\"}", "twice"},
      {"{\"prompt\": \"a\", \"temp\": 0.5, \"temperature\": 0.7}", "temp and temperature: expected one of them"},
      {"{\"prompt\": 5}", "prompt: expected a string"},
      {"{\"tokens\": [\"5\"]}", "tokens: expected an array of numbers"},
      {"{\"tokens\": 5}", "tokens: expected an array of numbers"},
      {"{\"tokens\": []}", "tokens []: expected an array of token ids"},
      {"{\"tokens\": [99999]}", "Usage: tokens: 99999 is no token"},
      {"{\"tokens\": [1.5]}", "tokens [1.5]: expected an array of token ids"},
      {"{\"tokens\": [-1]}", "tokens [-1]"},
      {"{\"tokens\": [1], \"force\": [2, -1]}", "force [2,-1]: expected an array of token ids"},
      {"{\"tokens\": [1], \"force\": [99999]}", "force: 99999 is no token"},
      {"{\"tokens\": [[1]]}", "no JSON at byte 12"},
      {"{\"prompt\": \"a\", \"stop\": 1}", "key \"stop\"; accepted are prompt, tokens, n"},
      {"{\"prompt\": \"a\", \"n\": -1}", "n '-1': expected an integer from 0"},
      {"{\"prompt\": \"a\", \"n\": 1.5}", "n '1.5'"},
      {"{\"prompt\": \"a\", \"top_k\": -1}", "top_k '-1'"},
      {"{\"prompt\": \"a\", \"min_p\": 2}", "min_p '2'"},
      {"{\"prompt\": \"a\", \"temperature\": -1}", "temperature '-1': expected a number from 0"},
      {"{\"prompt\": \"a\", \"seed\": -1}", "seed '-1'"},
      {"{\"prompt\": \"a\", \"n\": \"1\"}", "n: expected a number"},
      {"{\"prompt\": \"a\", \"top_p\": 2}", "top_p '2': expected a number from 0 to 1"},
      {"{\"prompt\": \"a\", \"temp\": null}", "temp: expected a number"},
      {"{\"prompt\": \"a\"} x", "the end of the line"},
      {"{\"prompt\": \"a\",}", "a string"},
      {"{\"prompt\": \"a\" \"n\": 1}", "',' or '}'"},
      {"{\"prompt\" \"a\"}", "':'"},
      {"{'prompt': 1}", "a string"},
      {"{\"prompt\": \"a}", "a quote"},
      {"{\"prompt\": \"\\q\"}", "escape"},
      {"{\"prompt\": \"\\u12g4\"}", "escape"},
      {"{\"prompt\": \"\\ud800\"}", "surrogate"},
      {"{\"prompt\": \"\\ud800\\u0041\"}", "surrogate"},
      {"{\"prompt\": \"\\udc00\"}", "surrogate"},
      {"{\"prompt\": \"\xff\"}", "UTF-8"},
      {"{\"prompt\": \"a\tb\"}", "control"},
      {"{\"prompt\": \"a\", \"n\": 01}", "zeros"},
      {"{\"prompt\": \"a\", \"temp\": 1.}", "a digit"},
      {"{\"prompt\": \"a\", \"temp\": .5}", "a string, a number"},
      {"{\"prompt\": \"a\", \"temp\": 1e}", "a digit"},
      {"{\"prompt\": \"a\", \"n\": -}", "number"},
      {"{\"prompt\": \"a\", \"n\": NaN}", "a string, a number"},
      {"{\"prompt\": tru}", "a string, a number"},
  };
  for (const auto& [line, why] : kRefused) {
    const std::string error = answer_to(line).value("error", "");
    EXPECT_NE(error.find(why), std::string::npos) << line << ": " << error;
    EXPECT_EQ(error.find("-"
                         "-"),
              std::string::npos)
        << line << ": " << error;  // no option of the command line
  }
  EXPECT_TRUE(answer_to("{\"tokens\": " + std::string(1000000, '[') + "}").contains("error"));
  EXPECT_TRUE(answer_to(std::string("{\"prompt\": \"a\0b\"}", 17)).contains("error"));
}

TEST_F(BatchTest, ReadsStringsAsJsonSpellsThem) {
  const Json plain = answer_to("{\"prompt\": \"a\\u00e9\\ud83d\\ude00\\n\\\\n\\/\", \"n\": 0}");
  const Json other = answer_to(" { \"prompt\" :\t\"\\u0061\xc3\xa9\xf0\x9f\x98\x80\\n\\\\n/\" , \"n\" : 0 } \r");
  EXPECT_EQ(plain["prompt_ids"], other["prompt_ids"]);
  std::vector<int32_t> expected;
  ASSERT_TRUE(Tokenizer(*file_).encode("a\xc3\xa9\xf0\x9f\x98\x80\n\\n/", {true, true}, &expected).ok());
  EXPECT_EQ(plain["prompt_ids"], expected);
}

TEST_F(BatchTest, TakesTheCommandLinesOptionsWhereALineSaysNone) {
  const auto answers =
      answer("{\"tokens\": [7]}\n{\"tokens\": [7], \"n\": 1}\n{\"tokens\": [7], \"force\": [9, 9]}\n", 3, {"-n", "2"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["ids"], (Ids{8, 9}));
  EXPECT_EQ(answers[1]["ids"], (Ids{8}));
  EXPECT_EQ(answers[2]["ids"], (Ids{9, 9}));
}

TEST_F(BatchTest, DumpsAFileAPrompt) {
  const std::string path = folder_ / "logits";
  const auto answers =
      answer("{\"tokens\": [7, 8], \"n\": 3}\n{\n{\"tokens\": [9], \"n\": 0}\n", 2, {"--dump-logits", path});
  ASSERT_EQ(answers.size(), 3u);
  const size_t row = sizeof(float) * static_cast<size_t>((*file_).tokens());
  EXPECT_EQ(read_file(path + ".0").size(), 4 * row);
  EXPECT_FALSE(std::filesystem::exists(path + ".1"));
  EXPECT_EQ(read_file(path + ".2").size(), row);
  float after_ten = 0;
  std::memcpy(&after_ten, read_file(path + ".0").data() + 3 * row + 11 * sizeof(float), sizeof after_ten);
  EXPECT_EQ(after_ten, 50);
}

TEST_F(BatchTest, EndsAtTheContextAndRefusesAPromptPastIt) {
  const auto answers =
      answer("{\"tokens\": [5, 6, 7]}\n{\"tokens\": [5, 6, 7, 8, 9]}\n{\"tokens\": [5, 6, 7, 8]}\n", 2, {}, 4);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["ids"], (Ids{8, 9}));
  EXPECT_EQ(answers[0]["finish_reason"], "length");
  EXPECT_EQ(answers[1]["error"], "Usage: the prompt has 5 tokens; the context has room for 4");
  EXPECT_EQ(answers[2]["ids"], (Ids{9}));
}

/// One answer is a success, and so is nothing asked; where nothing but refusals came of the file, the file is wrong.
TEST_F(BatchTest, FailsWhereEveryLineIsRefused) {
  const std::pair<const char*, int> kFiles[] = {{"{\"tokens\": [5], \"n\": 1}\nnonsense\n", 0},
                                                {"\n \n", 0},
                                                {"nonsense\n", kExitUsage},
                                                {"{}\n{\"tokens\": [5], \"n\": -1}\n", kExitUsage}};
  for (const auto& [lines, code] : kFiles) {
    write_file(folder_ / "prompts", lines);
    RunOptions options;
    ASSERT_TRUE(parse_command_line({"--prompts", folder_ / "prompts"}, kProgram, &options).ok());
    CountingSlots engine((*file_).tokens(), 8, 2);
    testing::internal::CaptureStdout();
    const Status status = answer_and_print(engine, *file_, options, 0);
    const std::string answers = testing::internal::GetCapturedStdout();
    EXPECT_EQ(status.code, code) << lines;
    EXPECT_EQ(answers.find("error") != std::string::npos, std::string(lines).size() > 3);
  }
}

TEST_F(BatchTest, AMissingFileEndsTheRun) {
  RunOptions options;
  ASSERT_TRUE(parse_command_line({"--prompts", folder_ / "none"}, kProgram, &options).ok());
  CountingSlots engine((*file_).tokens(), 8, 2);
  EXPECT_EQ(answer_prompts(engine, *file_, options, 0, nullptr, &totals_).code, kExitEnvironment);
  EXPECT_EQ(parse_command_line({"--prompts", "f", "-p", "x"}, kProgram, &options).code, kExitUsage);
}

}  // namespace
}  // namespace lane::test
