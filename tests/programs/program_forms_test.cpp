// The forms of one program against each other: chunks of 8 and fewer rows, batches of 3 sequences, the decode step
// alone. A batch gives the bits that each sequence has alone; a chunk may sum in another order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>

#include "program.h"
#include "support/files.h"

namespace lane::test {
namespace {

using nlohmann::json;

constexpr int kChunk = 8, kContext = 40;
constexpr float kChunkBound = 1e-3f;  // on a logit, between chunks and decode steps with float activations

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
  json alone(const std::vector<int>& prompt, std::vector<std::string> options, const std::string& program = "llama") {
    options.insert(options.end(), {"--tokens", joined(prompt), "--ctx", std::to_string(kContext)});
    return run_json(program, options);
  }
  /// What decode steps alone give: the prompt's first id, and the others as if they had been chosen. Of the ids, those
  /// after the prompt.
  std::vector<int> decoded(const std::vector<int>& prompt, int count, std::vector<std::string> options = {},
                           const std::string& program = "llama") {
    const std::vector<int> rest(prompt.begin() + 1, prompt.end());
    options.insert(options.end(), {"-n", std::to_string(int(rest.size()) + count)});
    if (!rest.empty()) options.insert(options.end(), {"--force", joined(rest)});
    const std::vector<int> ids = alone({prompt[0]}, options, program).at("ids");
    return {ids.begin() + long(rest.size()), ids.end()};
  }
  std::string dump_path() const { return folder_ / "logits"; }
};

std::vector<float> floats_of(const Path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

float greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

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
  const std::vector<json> answers = answer(lines), chunked = ids_of(answers),
                          direct = ids_of(answer(lines, {"--no-cuda-graphs"}));
  ASSERT_EQ(chunked.size(), lengths.size());
  EXPECT_EQ(direct, chunked);
  for (size_t i = 0; i < lengths.size(); ++i) EXPECT_EQ(chunked[i], decoded(prompt_of(lengths[i]), 5)) << lengths[i];
  EXPECT_EQ(chunked[6].size(), 2u);  // the last token is not fed
  EXPECT_EQ(chunked[7].size(), 1u);
  for (const json& ended : {answers[6], answers[7]}) EXPECT_EQ(ended.at("finish_reason"), "length");
  EXPECT_EQ(alone(prompt_of(2 * kChunk + 1), {"-n", "5"}).at("ids"), chunked[5]);
}

// note [the head of a chunk's rows]
TEST_F(ProgramForms, AChunksLogitsAreThoseOfDecodeSteps) {
  // The second has float weights, whose chunks of 16 rows are on tensor cores where there are such.
  const std::tuple<const char*, int, size_t> kPrograms[] = {{"llama", kChunk, 512}, {"floats", 2 * kChunk, 512}};
  for (const auto& [program, chunk, vocabulary] : kPrograms) {
    for (int length : {1, chunk - 1, chunk, 2 * chunk + 1, kContext}) {
      SCOPED_TRACE(fmt::format("{}, {} tokens", program, length));
      const std::vector<int> prompt = prompt_of(length);
      const std::string chunks = folder_ / "chunks", steps = folder_ / "steps";
      const json chunked = alone(prompt, {"-n", "4", "--dump-logits", chunks}, program);
      EXPECT_EQ(chunked.at("ids"), decoded(prompt, 4, {"--dump-logits", steps}, program));
      const std::vector<float> of_chunks = floats_of(chunks), of_steps = floats_of(steps);
      EXPECT_GE(of_chunks.size(), size_t(length) * vocabulary);
      EXPECT_EQ(of_chunks.size(), of_steps.size());
      EXPECT_LE(greatest_difference(of_chunks, of_steps), kChunkBound);
    }
  }
}

TEST_F(ProgramForms, APromptPastTheContextIsRefusedInItsPlace) {
  const std::vector<json> answers =
      answer({json{{"tokens", prompt_of(kContext + 1)}}.dump(), "{\"tokens\": [5], \"n\": 1}"});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].at("error"), "Usage: the prompt has 41 tokens; the context has room for 40");
  EXPECT_EQ(answers[1].at("ids").size(), 1u);
}

TEST_F(ProgramForms, AnEmptyPromptIsTheBeginTokenAlone) {
  const std::vector<json> answers = answer({R"({"prompt": "", "n": 4})", R"({"tokens": [1], "n": 4})"});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].at("prompt_ids"), json::parse("[1]"));
  EXPECT_EQ(answers[0].at("ids"), answers[1].at("ids"));
  EXPECT_EQ(answers[1].at("ids").size(), 4u);
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

// The captured graphs, thousands of times; each prompt's ids are those of decode steps alone.
TEST_F(ProgramForms, ThousandsOfReplays) {
  std::vector<std::string> lines;
  std::vector<std::vector<int>> prompts;
  for (int i = 0; i < 150; ++i) {
    prompts.push_back(prompt_of(1 + i % 19));
    lines.push_back(json{{"tokens", prompts.back()}, {"n", 12 + i % 9}}.dump());
  }
  const std::vector<json> replayed = ids_of(answer(lines)), direct = ids_of(answer(lines, {"--no-cuda-graphs"}));
  ASSERT_EQ(replayed.size(), lines.size());
  EXPECT_EQ(replayed, direct);
  for (size_t i = 0; i < lines.size(); i += 10) EXPECT_EQ(replayed[i], decoded(prompts[i], 12 + int(i) % 9)) << i;
}

// One sequence over the whole context: every position of every cache.
TEST_F(ProgramForms, AContextFullOfReplays) {
  constexpr int kWhole = 2048, kPrompt = kWhole - 9;
  const std::vector<int> prompt = prompt_of(kPrompt), rest(prompt.begin() + 1, prompt.end());
  const std::vector<std::string> steps = {"--tokens", joined({prompt[0]}), "--force", joined(rest), "-n", "4000"};
  const json replayed = run_json("llama", steps), chunked = run_json("llama", {"--tokens", joined(prompt)});
  const std::vector<int> ids = replayed.at("ids");
  EXPECT_EQ(chunked.at("ids"), std::vector<int>(ids.begin() + kPrompt - 1, ids.end()));
  EXPECT_TRUE(chunked.at("finish_reason") == "stop" || ids.size() == size_t(kWhole)) << ids.size();
}

TEST_F(ProgramForms, OnePromptManyTimes) {
  const std::vector<std::string> lines(7, json{{"tokens", prompt_of(11)}, {"n", 6}}.dump());
  const std::vector<json> answers = ids_of(answer(lines));
  ASSERT_EQ(answers.size(), lines.size());
  for (const json& ids : answers) EXPECT_EQ(ids, answers[0]);
  EXPECT_EQ(answers[0], alone(prompt_of(11), {"-n", "6"}).at("ids"));
}

TEST_F(ProgramForms, TwoModelsInOneProcess) {
  const Outcome both = run_process({program_path("both"), program_path("llama"), program_path("qwen2")});
  ASSERT_EQ(both.code, 0) << both.err;
  const json interface = json::parse(both.out);
  ASSERT_EQ(interface.at("llama").size(), 8u);
  const json llama = run_json("llama", {"--tokens", "5,6,7", "-n", "8"});
  const json qwen2 = run_json("qwen2", {"--tokens", "5,6,7", "-n", "8"});
  for (size_t i = 0; i < llama.at("ids").size(); ++i) EXPECT_EQ(interface.at("llama")[i], llama.at("ids")[i]);
  for (size_t i = 0; i < qwen2.at("ids").size(); ++i) EXPECT_EQ(interface.at("qwen2")[i], qwen2.at("ids")[i]);
  EXPECT_EQ(interface.at("llama"), interface.at("llama_again"));
}

}  // namespace
}  // namespace lane::test
