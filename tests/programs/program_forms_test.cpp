// The forms of one program against each other: chunks of 8 and fewer rows, batches of 3 sequences, the decode step
// alone. Sums have one order in all of them, so what they give is the same to the bit.
#include <algorithm>
#include <numeric>

#include "program.h"
#include "support/files.h"

namespace lane::test {
namespace {

using nlohmann::json;

constexpr int kChunk = 8, kContext = 40;

/// Ids that differ from prompt to prompt, clear of the vocabulary's control tokens.
std::vector<int> prompt_of(int length) {
  std::vector<int> ids(size_t(length), 0);
  for (int i = 0; i < length; ++i) ids[size_t(i)] = 3 + (i * 37 + length * 11) % 250;
  return ids;
}

class ProgramForms : public ::testing::Test {
 protected:
  TempFolder folder_;

  /// The answers to `lines` of --prompts.
  std::vector<json> answer(const std::vector<std::string>& lines, std::vector<std::string> options = {}) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_file(folder_ / "prompts", text);
    options.insert(options.end(), {"--prompts", folder_ / "prompts", "--ctx", std::to_string(kContext)});
    const Outcome outcome = run_program("llama", options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<json> answers;
    for (std::string_view rest = outcome.out; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
      answers.push_back(json::parse(rest.substr(0, rest.find('\n'))));
    return answers;
  }
  json alone(const std::vector<int>& prompt, std::vector<std::string> options) {
    options.insert(options.end(), {"--tokens", joined(prompt), "--ctx", std::to_string(kContext)});
    return run_json("llama", options);
  }
  std::string dump_path() const { return folder_ / "logits"; }
};

std::vector<json> ids_of(const std::vector<json>& answers) {
  std::vector<json> ids;
  for (const json& answer : answers) ids.push_back(answer.value("ids", json("no ids: " + answer.dump())));
  return ids;
}

TEST_F(ProgramForms, PromptsOfAnyLengthContinueAsDecoded) {
  std::vector<std::string> lines;
  const std::vector<int> lengths = {1,          kChunk - 1,     kChunk,       kChunk + 1,
                                    2 * kChunk, 2 * kChunk + 1, kContext - 1, kContext};
  for (int length : lengths) lines.push_back(json{{"tokens", prompt_of(length)}, {"n", 5}}.dump());
  // With a dump, prompts are fed a decode step at a time.
  const std::vector<json> decoded = ids_of(answer(lines, {"--dump-logits", dump_path()}));
  const std::vector<json> chunked = ids_of(answer(lines)), direct = ids_of(answer(lines, {"--no-cuda-graphs"}));
  ASSERT_EQ(decoded.size(), lengths.size());
  EXPECT_EQ(chunked, decoded);
  EXPECT_EQ(direct, decoded);
  EXPECT_EQ(chunked[6].size(), 2u);  // the last token is not fed
  EXPECT_EQ(chunked[7].size(), 1u);
  EXPECT_EQ(alone(prompt_of(2 * kChunk + 1), {"-n", "5"}).at("ids"), decoded[5]);
}

TEST_F(ProgramForms, APromptPastTheContextIsRefusedInItsPlace) {
  const std::vector<json> answers =
      answer({json{{"tokens", prompt_of(kContext + 1)}}.dump(), "{\"tokens\": [5], \"n\": 1}"});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].at("error"), "Usage: the prompt has 41 tokens; the context has room for 40");
  EXPECT_EQ(answers[1].at("ids").size(), 1u);
}

TEST_F(ProgramForms, ASequencesBitsAreThoseItHasAlone) {
  struct Asked {
    int length, count;
    double temperature;
  };
  // More prompts than slots, some that end early, greedy and sampled.
  const std::vector<Asked> asked = {{5, 9, 0}, {1, 2, 0}, {20, 12, 0.9}, {3, 1, 0}, {9, 6, 2}, {2, 0, 0}, {16, 7, 0}};
  std::vector<std::string> lines;
  for (size_t i = 0; i < asked.size(); ++i) {
    const Asked& a = asked[i];
    lines.push_back(json{{"tokens", prompt_of(a.length)}, {"n", a.count}, {"temp", a.temperature}, {"seed", i}}.dump());
  }
  const std::vector<json> answers = answer(lines, {"--dump-logits", dump_path()});
  ASSERT_EQ(answers.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    const std::string dump = folder_ / "alone";
    const json one = alone(prompt_of(asked[i].length),
                           {"-n", std::to_string(asked[i].count), "--temp", std::to_string(asked[i].temperature),
                            "--seed", std::to_string(i), "--dump-logits", dump});
    EXPECT_EQ(answers[i].at("ids"), one.at("ids")) << i;
    EXPECT_EQ(answers[i].at("finish_reason"), one.at("finish_reason")) << i;
    EXPECT_TRUE(read_file(dump_path() + "." + std::to_string(i)) == read_file(dump)) << "logits of prompt " << i;
  }
}

TEST_F(ProgramForms, OnePromptManyTimes) {
  const std::vector<std::string> lines(7, json{{"tokens", prompt_of(11)}, {"n", 6}}.dump());
  const std::vector<json> answers = ids_of(answer(lines));
  ASSERT_EQ(answers.size(), lines.size());
  for (const json& ids : answers) EXPECT_EQ(ids, answers[0]);
  EXPECT_EQ(answers[0], alone(prompt_of(11), {"-n", "6"}).at("ids"));
}

}  // namespace
}  // namespace lane::test
