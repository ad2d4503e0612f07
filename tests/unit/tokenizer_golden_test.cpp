// Ids of whole vocabularies against llama.cpp's. The files are several megabytes each and stay outside the project:
// LANE_GOLDENS names the folder that holds tokenizers/, LANE_MODELS the one with the two real checkpoints.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lane/vocabulary.h"
#include "runtime/escapes.h"
#include "runtime/tokenizer.h"
#include "support/files.h"

namespace lane::test {
namespace {

using LANE_NAMESPACE::EncodeOptions;
using LANE_NAMESPACE::Tokenizer;

std::string folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::string& text, EncodeOptions options) {
  std::vector<int32_t> ids;
  EXPECT_TRUE(tokenizer.encode(text, options, &ids).ok());
  return ids;
}

std::vector<std::string> split_texts(const std::string& all) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t at = 0;
  for (size_t next; (next = all.find(separator, at)) != std::string::npos; at = next + separator.size()) {
    texts.push_back(all.substr(at, next - at));
  }
  return texts;
}

class VocabularyFile : public testing::TestWithParam<const char*> {};

TEST_P(VocabularyFile, GivesTheExpectedIds) {
  const std::string folder = folder_of("LANE_GOLDENS");
  if (folder.empty()) GTEST_SKIP() << "LANE_GOLDENS names no folder";
  const std::string path = folder + "/tokenizers/ggml-vocab-" + GetParam() + ".gguf";
  const Checkpoint checkpoint = read_checkpoint(path);
  const Vocabulary vocabulary = read_vocabulary(checkpoint, describe_vocabulary(checkpoint));
  const Tokenizer tokenizer(vocabulary);
  std::istringstream lines(read_file(path + ".out"));
  int texts = 0;
  for (const std::string& text : split_texts(read_file(path + ".inp"))) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const std::vector<int32_t> expected{std::istream_iterator<int32_t>(numbers), {}};
    EXPECT_EQ(encode(tokenizer, text, {false, false}), expected) << "'" << text << "'";
    ++texts;
  }
  EXPECT_GT(texts, 40);
}

INSTANTIATE_TEST_SUITE_P(Files, VocabularyFile,
                         testing::Values("llama-spm", "phi-3", "llama-bpe", "gpt-2", "qwen2", "falcon", "starcoder",
                                         "deepseek-coder"));

class RealCheckpoint : public testing::TestWithParam<const char*> {};

TEST_P(RealCheckpoint, GivesTheExpectedIds) {
  const std::string goldens = folder_of("LANE_GOLDENS"), models = folder_of("LANE_MODELS");
  if (goldens.empty() || models.empty()) GTEST_SKIP() << "LANE_GOLDENS or LANE_MODELS names no folder";
  const Checkpoint checkpoint = read_checkpoint(models + "/" + GetParam() + ".gguf");
  const Vocabulary vocabulary = read_vocabulary(checkpoint, describe_vocabulary(checkpoint));
  const Tokenizer tokenizer(vocabulary);
  const auto golden = nlohmann::json::parse(read_file(goldens + "/tokenizers/" + GetParam() + ".json"));
  for (const auto& one : golden["cases"]) {
    // The oracle's texts went through a command line, which replaces \n and \t.
    const std::string text = LANE_NAMESPACE::replace_escapes(one["text"].get<std::string>());
    const auto ids = encode(tokenizer, text, {true, one["parse_special"].get<bool>()});
    EXPECT_EQ(ids, one["ids"].get<std::vector<int32_t>>()) << "'" << text << "' " << one["parse_special"];
  }
}

// A heap and a scanner: quadratic merging or a recursive regular expression would take minutes or the stack.
TEST_P(RealCheckpoint, EncodesAMegabyteOfOneLetter) {
  const std::string models = folder_of("LANE_MODELS");
  if (models.empty()) GTEST_SKIP() << "LANE_MODELS names no folder";
  const Checkpoint checkpoint = read_checkpoint(models + "/" + GetParam() + ".gguf");
  const Vocabulary vocabulary = read_vocabulary(checkpoint, describe_vocabulary(checkpoint));
  const Tokenizer tokenizer(vocabulary);
  for (const char* letter : {"a", " ", "\n", "\xE6\x97\xA5", "\xFF", "'"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += letter;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_GT(encode(tokenizer, text, {}).size(), 1000u);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << letter;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RealCheckpoint, testing::Values("gemma3-270m", "qwen2.5-coder-0.5b"));

}  // namespace
}  // namespace lane::test
