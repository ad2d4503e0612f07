// What lanec itself says about a vocabulary: the numbers a program is made with, and the ids that `lanec tokenize`
// prints.
#include "lane/vocabulary.h"

#include <gtest/gtest.h>

#include "unit/small_vocabulary.h"

namespace lane::test {
namespace {

TEST(Vocabulary, IsPrintedAsNumbers) {
  VocabularySource source = (*open_vocabulary(bpe_vocabulary({{"ab"}}, {"a b"}))).source;
  source.tokens = {10, 258, 2500};
  source.types = {3000, 258, 1032};
  source.merges = {5000, 1, 11};
  EXPECT_EQ(to_cpp(source, "kVocabulary"), R"(constexpr VocabularySource kVocabulary = {
    TokenizerModel::Bpe,
    2,  // pre-tokenizer gpt-2
    {10, 258, 2500},  // tokens: offset, elements, bytes
    {0, 0, 0},  // scores: offset, elements, bytes
    {3000, 258, 1032},  // types: offset, elements, bytes
    {5000, 1, 11},  // merges: offset, elements, bytes
    257, 257, -1, -1, -1, -1,  // bos, eos, eot, eom, unknown, padding
    -1, -1, -1,  // fim: padding, repository, separator
    false, false,  // add bos, eos
    false,  // add space prefix
    false,  // strip after special
};
)");
}

TEST(Vocabulary, TakesSentencePieceDefaultsWhereTheIdsExist) {
  const VocabularySource source = (*open_vocabulary(spm_vocabulary({{"a"}}))).source;
  EXPECT_EQ(source.bos, 1);
  EXPECT_EQ(source.eos, 2);
  EXPECT_EQ(source.unknown, 0);
  EXPECT_TRUE(source.add_bos && source.add_space_prefix);
  EXPECT_FALSE(source.add_eos);
}

TEST(Vocabulary, KnowsWhatEndsAGeneration) {
  VocabularyText text = bpe_vocabulary({{"<|im_end|>", 3}, {"<|end|>", 3}, {"<|eot_id|>"}}, {"a b"});
  text.extra.u32("tokenizer.ggml.eot_token_id", 65);
  const OpenVocabulary plain = open_vocabulary(text);
  EXPECT_EQ((*plain).end_ids, (std::vector<int32_t>{65, 256, 257, 258, 259}));
  EXPECT_EQ((*plain).type(258), LANE_NAMESPACE::TokenType::Control);  // whatever the file says
  // With these two, <|end|> closes a message and no answer.
  const OpenVocabulary harmony =
      open_vocabulary(bpe_vocabulary({{"<|end|>", 3}, {"<|return|>", 3}, {"<|call|>", 3}}, {"a b"}));
  EXPECT_EQ((*harmony).end_ids, (std::vector<int32_t>{257, 258, 259}));
}

TEST(Vocabulary, TokenizesAsAJsonList) {
  const OpenVocabulary file = open_vocabulary(spm_vocabulary({{"\xE2\x96\x81"}, {"a"}}));
  EXPECT_EQ(tokenize_json(*file, "a<s>", true, true), "[1, 259, 260, 1]");
  EXPECT_EQ(tokenize_json(*file, "", false, true), "[]");
  EXPECT_EQ(tokenize_json(*file, "<s>", false, false), "[259, 63, 118, 65]");
}

}  // namespace
}  // namespace lane::test
