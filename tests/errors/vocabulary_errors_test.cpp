// Vocabularies that are refused, and by what name.
#include <gtest/gtest.h>

#include "lane/vocabulary.h"
#include "runtime/pretokenizer.h"
#include "support/expect_error.h"
#include "unit/small_vocabulary.h"

namespace lane::test {
namespace {

using LANE_NAMESPACE::ArrayRange;
using LANE_NAMESPACE::TokenizerModel;

const std::string kYes(1, '\1');

VocabularyText sound_spm() { return spm_vocabulary({{"a"}, {"b"}}); }
VocabularyText sound_bpe() { return bpe_vocabulary({{"ab"}}, {"a b"}); }

template <class E>
void expect_refused(std::initializer_list<std::string_view> parts, const VocabularyText& text,
                    std::string_view pre = {}) {
  expect_error<E>(parts, [&] { open_vocabulary(text, pre); });
}

TEST(VocabularyErrors, SoundOnesAreNotRefused) {
  EXPECT_EQ((*open_vocabulary(sound_spm())).tokens(), 261);
  EXPECT_EQ((*open_vocabulary(sound_bpe())).tokens(), 258);
}

TEST(VocabularyErrors, UnknownTokenizerModel) {
  VocabularyText text = sound_bpe();
  text.model = "bert";
  expect_refused<NotYetError>({"tokenizer.ggml.model", "bert", "gpt2"}, text);
  text.without = {"model"};
  expect_refused<CheckpointError>({"tokenizer.ggml.model"}, text);
}

TEST(VocabularyErrors, PretokenizerIsNeverGuessed) {
  VocabularyText text = sound_bpe();
  text.pre = "gpt-\x1b[2J";
  expect_refused<NotYetError>({"tokenizer.ggml.pre is 'gpt-\\x1b[2J'", "llama-bpe"}, text);
  EXPECT_NO_THROW(open_vocabulary(text, "qwen2"));
  text.without = {"pre"};
  expect_refused<CheckpointError>({"tokenizer.ggml.pre", "--pre"}, text);
  EXPECT_NO_THROW(open_vocabulary(text, "qwen2"));
  expect_refused<UsageError>({"--pre 'qwen'", "qwen2"}, text, "qwen");
  expect_refused<UsageError>({"--pre", "SentencePiece"}, sound_spm(), "qwen2");
}

TEST(VocabularyErrors, MissingArrays) {
  for (const char* key : {"tokens", "scores"}) {
    VocabularyText text = sound_spm();
    text.without = {key};
    expect_refused<CheckpointError>({"no key 'tokenizer.ggml." + std::string(key) + "'"}, text);
  }
  VocabularyText text = sound_bpe();
  text.without = {"merges"};
  expect_refused<CheckpointError>({"no key 'tokenizer.ggml.merges'"}, text);
  text.without.clear();
  text.merges.clear();
  expect_refused<CheckpointError>({"'tokenizer.ggml.merges' without elements"}, text);
  text.tokens.clear();
  expect_refused<CheckpointError>({"'tokenizer.ggml.tokens' without elements"}, text);
}

TEST(VocabularyErrors, ArraysOfAnotherLength) {
  VocabularyText text = sound_spm();
  text.without = {"scores"};
  text.extra.array("tokenizer.ggml.scores", MetaType::F32, 2, std::string(8, '\0'));
  expect_refused<CheckpointError>({"tokenizer.ggml.scores", "2 elements", "261"}, text);
  text = sound_bpe();
  text.without = {"token_type"};
  text.extra.array("tokenizer.ggml.token_type", MetaType::I32, 1, std::string(4, '\1'));
  expect_refused<CheckpointError>({"tokenizer.ggml.token_type", "1 elements", "258"}, text);
}

// A byte array read as floats would run past its end.
TEST(VocabularyErrors, ArraysOfAnotherType) {
  VocabularyText text = sound_spm();
  text.without = {"scores"};
  text.extra.array("tokenizer.ggml.scores", MetaType::U8, 261, std::string(261, '\0'));
  expect_refused<CheckpointError>({"tokenizer.ggml.scores", "f32"}, text);
  text = sound_spm();
  text.without = {"tokens"};
  text.extra.u32("tokenizer.ggml.tokens", 3);
  expect_refused<CheckpointError>({"tokenizer.ggml.tokens", "strings"}, text);
}

TEST(VocabularyErrors, SpecialIdsOutOfRange) {
  for (const char* name : {"eos", "eot", "eom", "padding", "unknown", "fim_pad", "fim_rep", "fim_sep"}) {
    VocabularyText text = sound_spm();
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    text.extra.u32(key, 261);
    expect_refused<CheckpointError>({key, "261", "below 261"}, text);
  }
  VocabularyText text = sound_spm();
  text.extra.u32("tokenizer.ggml.bos_token_id", 0xFFFFFFFF);
  expect_refused<CheckpointError>({"tokenizer.ggml.bos_token_id", "4294967295"}, text);
}

TEST(VocabularyErrors, AddingATokenThatIsNotThere) {
  VocabularyText text;
  text.model = "gpt2";
  text.tokens = {{"a"}, {"b"}, {"ab"}};
  text.merges = {"a b"};
  for (const char* name : {"bos", "eos"}) {
    VocabularyText asking = text;
    asking.extra.entry("tokenizer.ggml.add_" + std::string(name) + "_token", MetaType::Bool, kYes);
    expect_refused<CheckpointError>({"add_" + std::string(name) + "_token", "no " + std::string(name) + " id"}, asking);
  }
  EXPECT_FALSE((*open_vocabulary(text, "llama-bpe")).source.add_bos);  // a default asks for nothing that is not there
}

TEST(VocabularyErrors, DuplicateTokens) {
  VocabularyText text = sound_spm();
  text.tokens.push_back({"a"});
  expect_refused<CheckpointError>({"tokens 259 and 261 are the same text"}, text);
  text.tokens.back().text = "";
  text.tokens.push_back({""});
  EXPECT_EQ((*open_vocabulary(text)).tokens(), 263);  // empty ones are padding that nothing finds
}

TEST(VocabularyErrors, MergesWithoutTwoHalves) {
  for (const char* merge : {"ab", "a ", " ", ""}) {
    VocabularyText text = sound_bpe();
    text.merges.push_back(merge);
    expect_refused<CheckpointError>({"merge 1 is not two pieces"}, text);
  }
}

TEST(VocabularyErrors, TypesAndScoresThatMeanNothing) {
  VocabularyText text = sound_spm();
  text.tokens[260].type = 7;
  expect_refused<CheckpointError>({"token 260 has type 7", "1 to 6"}, text);
  text = sound_spm();
  text.tokens[260].score = std::numeric_limits<float>::quiet_NaN();
  expect_refused<CheckpointError>({"the score of token 260 is NaN"}, text);
}

/// The bytes of a sound file with the source that describes them, as a program has both.
class SwappedFile : public testing::Test {
 protected:
  SwappedFile() : file_(open_vocabulary(sound_bpe())), source_((*file_).source) {
    const auto all = file_.checkpoint->shards.front().bytes;
    bytes_.assign(reinterpret_cast<const char*>(all.data()), all.size());
  }
  LANE_NAMESPACE::Status read() {
    Vocabulary vocabulary;
    // Its own block of exactly that size: the sanitizer sees every step past it.
    const std::vector<uint8_t> block(bytes_.begin(), bytes_.end());
    return LANE_NAMESPACE::read_vocabulary(source_, block.data(), block.size(), &vocabulary);
  }
  OpenVocabulary file_;
  VocabularySource source_;
  std::string bytes_;
};

TEST_F(SwappedFile, IsReadOnlyWithinItsBytes) {
  EXPECT_TRUE(read().ok());
  const std::string whole = bytes_;
  const size_t end = source_.merges.offset + source_.merges.bytes;
  for (size_t size = 0; size < end; size += 1 + size / 16) {
    bytes_ = whole.substr(0, size);
    EXPECT_EQ(read().code, LANE_NAMESPACE::kExitCheckpoint) << size;
  }
}

TEST_F(SwappedFile, IsReadOnlyWithinItsRanges) {
  for (ArrayRange VocabularySource::*range :
       {&VocabularySource::tokens, &VocabularySource::types, &VocabularySource::merges}) {
    const ArrayRange sound = source_.*range;
    for (const ArrayRange bad :
         {ArrayRange{~0ull, sound.count, sound.bytes}, ArrayRange{sound.offset, sound.count, ~0ull},
          ArrayRange{sound.offset, ~0ull, sound.bytes}, ArrayRange{sound.offset, sound.count, 3}}) {
      source_.*range = bad;
      EXPECT_EQ(read().code, LANE_NAMESPACE::kExitCheckpoint);
    }
    source_.*range = sound;
  }
  EXPECT_TRUE(read().ok());
}

TEST_F(SwappedFile, StringsStayInTheirArray) {
  bytes_.replace(source_.tokens.offset, 8, std::string(8, '\xFF'));
  EXPECT_NE(read().message.find("token 0 runs past the array"), std::string::npos);
}

TEST_F(SwappedFile, ChecksIdsAndAddedTokens) {
  source_.eos = source_.tokens.count;
  EXPECT_NE(read().message.find("eos_token_id is 258"), std::string::npos);
  source_.eos = -7;
  EXPECT_EQ(read().code, LANE_NAMESPACE::kExitCheckpoint);
  source_.eos = -1;
  source_.add_eos = true;
  EXPECT_NE(read().message.find("no eos_token_id"), std::string::npos);
}

}  // namespace
}  // namespace lane::test
