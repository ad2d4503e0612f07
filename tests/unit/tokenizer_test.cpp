// Tokenizers on small vocabularies, against what the rules say and against merging done the slow way.
#include "runtime/tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/detokenizer.h"
#include "support/golden_case.h"
#include "unit/small_vocabulary.h"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;
using Ids = std::vector<int32_t>;

const std::string kBlank = "\xE2\x96\x81";

Ids encode(const OpenVocabulary& file, const std::string& text, EncodeOptions options = {}) {
  Ids ids;
  EXPECT_TRUE(Tokenizer(*file).encode(text, options, &ids).ok());
  return ids;
}

std::string decode(const OpenVocabulary& file, const Ids& ids) {
  TextStream stream(*file);
  std::string text;
  for (int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

/// Merges whole passes over the symbols: the best pair, leftmost among equals, until there is none. `rank` is lower for
/// better and negative for none.
template <class Rank>
std::vector<std::string> merge_slowly(std::vector<std::string> symbols, const Rank& rank) {
  for (;;) {
    size_t best = symbols.size();
    double best_rank = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const std::optional<double> r = rank(symbols[i], symbols[i + 1]);
      if (r && (best == symbols.size() || *r < best_rank)) best = i, best_rank = *r;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<long>(best) + 1);
  }
}

TEST(Spm, MergesAsTheSlowWay) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<SmallToken> more = {{"a"}, {"b"}, {"c"}, {"\xC3\xA9"}};
    std::map<std::string, float> scores;
    for (const SmallToken& t : more) scores[t.text] = 0;
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (unsigned n = 2 + random() % 4; n > 0; --n) text += more[random() % 4].text;
      // Few scores, so that many are equal.
      if (scores.emplace(text, -static_cast<float>(random() % 4)).second) more.push_back({text, 1, scores[text]});
    }
    VocabularyText text = spm_vocabulary(more);
    text.extra.entry("tokenizer.ggml.add_space_prefix", MetaType::Bool, std::string(1, '\0'));
    const OpenVocabulary file = open_vocabulary(text);
    std::vector<std::string> symbols;
    std::string input;
    for (unsigned n = random() % 40; n > 0; --n) input += symbols.emplace_back(more[random() % 4].text);
    Ids expected;
    for (const auto& s : merge_slowly(symbols, [&](const auto&a, const auto&b) -> std::optional<double> {
           const auto found = scores.find(a + b);
           return found == scores.end() ? std::nullopt : std::optional<double>(-found->second);
         })) {
      expected.push_back((*file).find(s));
    }
    ASSERT_EQ(encode(file, input, {false, true}), expected) << input;
    ASSERT_EQ(decode(file, expected), input);
  }
}

TEST(Bpe, MergesAsTheSlowWay) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> known = {"a", "b", "c"}, merges;
    std::map<std::pair<std::string, std::string>, int> ranks;
    std::vector<SmallToken> more;
    while (merges.size() < 10) {
      const std::string left = known[random() % known.size()], right = known[random() % known.size()];
      if (!ranks.emplace(std::pair(left, right), static_cast<int>(merges.size())).second) continue;
      merges.push_back(left + " " + right);
      if (std::find(known.begin(), known.end(), left + right) != known.end()) continue;
      known.push_back(left + right);
      more.push_back({left + right});
    }
    const OpenVocabulary file = open_vocabulary(bpe_vocabulary(more, merges));
    std::vector<std::string> symbols;
    std::string input;
    for (unsigned n = random() % 40; n > 0; --n) input += symbols.emplace_back(known[random() % 3]);
    Ids expected;
    for (const auto& s : merge_slowly(symbols, [&](const auto&a, const auto&b) -> std::optional<double> {
           const auto found = ranks.find({a, b});
           return found == ranks.end() ? std::nullopt : std::optional<double>(found->second);
         })) {
      expected.push_back((*file).find(s));
    }
    ASSERT_EQ(encode(file, input), expected) << input;
  }
}

TEST(Spm, PutsASpaceFirstAndAfterSpecialTokens) {
  // 259 ▁, 260 a, 261 ▁a, 262 a token that the user defined
  const std::vector<SmallToken> more = {{kBlank, 1, -5}, {"a", 1, -5}, {kBlank + "a", 1, -1}, {"[x]", 4}};
  const OpenVocabulary on = open_vocabulary(spm_vocabulary(more));
  EXPECT_EQ(encode(on, "a a"), (Ids{1, 261, 261}));
  EXPECT_EQ(encode(on, "a[x]a"), (Ids{1, 261, 262, 261}));
  EXPECT_EQ(encode(on, "</s>a"), (Ids{1, 2, 261}));
  EXPECT_EQ(encode(on, ""), (Ids{1}));
  EXPECT_EQ(encode(on, "[x]"), (Ids{1, 262}));
  EXPECT_EQ(encode(on, " "), (Ids{1, 259, 259}));
  VocabularyText text = spm_vocabulary(more);
  text.extra.entry("tokenizer.ggml.add_space_prefix", MetaType::Bool, std::string(1, '\0'));
  const OpenVocabulary off = open_vocabulary(text);
  EXPECT_EQ(encode(off, "a a"), (Ids{1, 260, 261}));
  EXPECT_EQ(encode(off, "a[x]a"), (Ids{1, 260, 262, 260}));
}

TEST(Spm, SpellsWhatIsNoTokenInBytes) {
  const OpenVocabulary file = open_vocabulary(spm_vocabulary({{kBlank}, {"\xC3\xA9"}}));
  EXPECT_EQ(encode(file, "\xC3\xA9", {false, true}), (Ids{259, 260}));
  EXPECT_EQ(encode(file, "\xE6\x97\xA5", {false, true}), (Ids{259, 3 + 0xE6, 3 + 0x97, 3 + 0xA5}));
  EXPECT_EQ(encode(file, std::string(1, '\0'), {false, true}), (Ids{259, 3}));
}

// As in llama.cpp: a byte that begins a character takes as many bytes as the character would have.
TEST(Spm, SpellsWhatIsNoUtf8InBytes) {
  const OpenVocabulary file = open_vocabulary(spm_vocabulary({{kBlank}, {"\xC3\xA9"}, {"a"}}));
  const auto ids = [&](const std::string& text) { return encode(file, text, {false, true}); };
  EXPECT_EQ(ids("\x80\xC3\xA9"), (Ids{259, 3 + 0x80, 260}));
  EXPECT_EQ(ids("\xC3\x61\x61"), (Ids{259, 3 + 0xC3, 3 + 'a', 261}));
  EXPECT_EQ(ids("\xFF\xC3\xA9\x61\x61"), (Ids{259, 3 + 0xFF, 3 + 0xC3, 3 + 0xA9, 3 + 'a', 261}));
  EXPECT_EQ(ids("\x61\xE6\x61"), (Ids{259, 261, 3 + 0xE6, 3 + 'a'}));  // cut off by the end
}

// The text of a user must not become a token that steers the model.
TEST(Tokenizer, KeepsControlTokensOutOfText) {
  const OpenVocabulary spm =
      open_vocabulary(spm_vocabulary({{kBlank, 1, -9}, {"<", 1, -9}, {"s", 1, -9}, {">", 1, -9}, {"s>", 1, -1}}));
  EXPECT_EQ(encode(spm, "<s>", {false, true}), (Ids{1}));
  EXPECT_EQ(encode(spm, "<s>", {false, false}), (Ids{259, 260, 263}));
  VocabularyText text = bpe_vocabulary({{"</"}, {"s>"}}, {"< /", "s >", "</ s>"});
  text.pre = "llama-bpe";  // where a whole word that is a token wins
  const OpenVocabulary bpe = open_vocabulary(text);
  EXPECT_EQ(encode(bpe, "a</s>b", {false, true}), (Ids{'a', 258, 'b'}));
  for (int32_t id : encode(bpe, "a</s>b", {false, false})) EXPECT_NE(id, 258);
}

TEST(Tokenizer, CutsLongerSpecialTokensFirst) {
  const OpenVocabulary file = open_vocabulary(bpe_vocabulary({{"<a>", 3}, {"<a><a>", 3}, {"><", 4}}, {"x y"}));
  EXPECT_EQ(encode(file, "<a><a><a>"), (Ids{257, 256}));
  EXPECT_EQ(encode(file, "<a>z<a>"), (Ids{256, 'z', 256}));
  EXPECT_EQ(encode(file, "z><z", {true, false}), (Ids{'z', 258, 'z'}));  // user-defined: always
  EXPECT_EQ(encode(file, "<a", {}), (Ids{'<', 'a'}));
}

TEST(Tokenizer, DropsWhiteSpaceAfterPhi3SpecialTokens) {
  VocabularyText text = spm_vocabulary({{kBlank}, {"<|user|>", 3}, {"a"}, {"<|endoftext|>", 3}});
  text.extra.string("general.name", "Phi-3 mini");
  const OpenVocabulary file = open_vocabulary(text);
  EXPECT_EQ(encode(file, "<|user|> \n\ta", {false, true}), (Ids{260, 259, 261}));
  EXPECT_EQ(encode(file, "<|endoftext|> a", {false, true}), (Ids{262, 259, 259, 261}));
  EXPECT_EQ(encode(file, "<s> a", {false, true}), (Ids{1, 259, 259, 261}));
}

TEST(Bpe, ReplacesInvalidBytes) {
  const OpenVocabulary file = open_vocabulary(bpe_vocabulary({}, {"x y"}));
  EXPECT_EQ(encode(file,
                   "a\xFF"
                   "b"),
            (Ids{'a', 0xEF, 0xBF, 0xBD, 'b'}));
  EXPECT_EQ(decode(file, encode(file, "na\xC3\xAFve \xF0\x9F\xA6\x99\n")), "na\xC3\xAFve \xF0\x9F\xA6\x99\n");
}

TEST(Bpe, SplitsAPieceThatIsNoToken) {
  const OpenVocabulary file = open_vocabulary(bpe_vocabulary({}, {"a b"}));  // merges to "ab", which is no token
  EXPECT_EQ(encode(file, "ab"), (Ids{'a', 'b'}));
}

TEST(Bpe, TakesAWholeWordWhereThePretokenizerSaysSo) {
  VocabularyText text = bpe_vocabulary({{"abc"}, {"ab"}}, {"a b"});
  EXPECT_EQ(encode(open_vocabulary(text), "abc"), (Ids{257, 'c'}));
  EXPECT_EQ(encode(open_vocabulary(text, "llama-bpe"), "abc", {false, true}), (Ids{256}));
}

TEST(Tokenizer, AddsBeginAndEndAsTheVocabularySays) {
  const std::string yes(1, '\1');
  VocabularyText text = bpe_vocabulary({}, {"x y"});
  EXPECT_EQ(encode(open_vocabulary(text), "a"), (Ids{'a'}));
  EXPECT_EQ(encode(open_vocabulary(text, "llama-bpe"), "a"), (Ids{256, 'a'}));  // its files leave the key out
  text.extra.entry("tokenizer.ggml.add_bos_token", MetaType::Bool, yes)
      .entry("tokenizer.ggml.add_eos_token", MetaType::Bool, yes);
  EXPECT_EQ(encode(open_vocabulary(text), "a"), (Ids{256, 'a', 256}));
  EXPECT_EQ(encode(open_vocabulary(text), "a", {false, true}), (Ids{'a'}));
}

TEST(Tokenizer, EncodesAMegabyteOfOneLetterQuickly) {
  const OpenVocabulary spm = open_vocabulary(spm_vocabulary({{"a", 1, -3}, {"aa", 1, -2}, {"aaaa", 1, -1}}));
  EXPECT_EQ(encode(spm, std::string(1 << 20, 'a'), {false, true}).size(), (1u << 18) + 3);  // ▁ in bytes first
  const OpenVocabulary bpe = open_vocabulary(bpe_vocabulary({{"aa"}, {"aaaa"}}, {"a a", "aa aa"}));
  EXPECT_EQ(encode(bpe, std::string(1 << 20, 'a')).size(), 1u << 18);
}

// Committed cases of real shape: the vocabularies of the golden checkpoints.
TEST(Tokenizer, RoundTripsWithTheGoldenVocabularies) {
  const TempFolder folder;
  for (const char* name : {"llama-f32", "qwen2-f32", "llama3-f32", "gemma3-f32"}) {
    const Checkpoint checkpoint = read_checkpoint(write_case(load_case(name), folder.path()));
    const Vocabulary vocabulary = read_vocabulary(checkpoint, describe_vocabulary(checkpoint));
    for (const std::string text : {"Hello world", " two  spaces\n", "na\xC3\xAFve \xF0\x9F\xA6\x99 12345", "it's"}) {
      Ids ids;
      ASSERT_TRUE(Tokenizer(vocabulary).encode(text, {false, true}, &ids).ok());
      std::string back;
      for (int32_t id : ids) back += token_bytes(vocabulary, id);
      EXPECT_EQ(back, vocabulary.source.add_space_prefix ? " " + text : text) << name;
    }
  }
}

TEST(Detokenizer, WritesWhatATokenIs) {
  const OpenVocabulary spm =
      open_vocabulary(spm_vocabulary({{kBlank + "a" + kBlank}, {"[x]" + kBlank, 4}, {"pad", 5}}));
  EXPECT_EQ(token_bytes(*spm, 259), " a ");
  EXPECT_EQ(token_bytes(*spm, 260), "[x]" + kBlank);  // as its user spelled it
  EXPECT_EQ(token_bytes(*spm, 3 + 0xE9), "\xE9");
  for (int32_t hidden : {0, 1, 2, 261, 262, -1}) EXPECT_EQ(token_bytes(*spm, hidden), "") << hidden;
  const OpenVocabulary bpe = open_vocabulary(bpe_vocabulary({{"\xC4\xA0"
                                                              "a\xE6\x97\xA5"}},
                                                            {"x y"}));
  EXPECT_EQ(token_bytes(*bpe, 256), " a\xE6\x97\xA5");  // a letter that stands for no byte is itself
  for (int32_t b = 0; b < 256; ++b) EXPECT_EQ(token_bytes(*bpe, b), std::string(1, static_cast<char>(b)));
}

TEST(TextStream, HoldsACharacterUntilItIsWhole) {
  const OpenVocabulary file = open_vocabulary(bpe_vocabulary({}, {"x y"}));
  TextStream stream(*file);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(256), "");  // a control token between
  EXPECT_EQ(stream.push(0xA6), "");
  EXPECT_EQ(stream.push(0x99), "\xF0\x9F\xA6\x99");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.push('a'),
            "\xC3"
            "a");  // nothing can complete it any more
  EXPECT_EQ(stream.push(0xFF), "\xFF");
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.finish(), "\xE6");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, LosesNoByteOfAnySequence) {
  const OpenVocabulary file = open_vocabulary(bpe_vocabulary({}, {"x y"}));
  std::mt19937 random(3);
  const uint8_t bytes[] = {'a', 0x80, 0xBF, 0xC3, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0x9F, 0xA6};
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    std::string all;
    for (unsigned n = random() % 12; n > 0; --n)
      all.push_back(static_cast<char>(ids.emplace_back(bytes[random() % 12])));
    ASSERT_EQ(decode(file, ids), all);
  }
}

TEST(Unicode, ReadsUtf8Strictly) {
  const auto length = [](std::string_view s) {
    uint32_t c;
    return decode_utf8(s, &c);
  };
  EXPECT_EQ(length("\xF4\x8F\xBF\xBF"), 4u);
  EXPECT_EQ(length("\xEF\xBF\xBF"), 3u);
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE6\x97",
                          "\xE6\x97"
                          "a"}) {
    EXPECT_EQ(length(bad), 0u) << bad;
  }
  for (uint32_t c = 0; c <= 0x10FFFF; c += 7) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string s;
    append_utf8(&s, c);
    uint32_t back = 0;
    ASSERT_EQ(decode_utf8(s, &back), s.size());
    ASSERT_EQ(back, c);
    for (size_t cut = 1; cut < s.size(); ++cut)
      ASSERT_EQ(incomplete_utf8_tail(std::string_view(s).substr(0, cut)), cut);
    ASSERT_EQ(incomplete_utf8_tail(s), 0u);
  }
  for (const char* hopeless : {"\xE0\x80", "\xED\xA0", "\xF4\x90", "\xF5", "\xC0", "a\x80"})
    EXPECT_EQ(incomplete_utf8_tail(hopeless), 0u);
}

TEST(Unicode, KnowsClasses) {
  EXPECT_EQ(class_of('A'), kUpper);
  EXPECT_EQ(class_of(0x1C5), kTitle);
  EXPECT_EQ(class_of(0x4E2D), kOtherLetter);
  EXPECT_EQ(class_of(0x301), kMark);
  EXPECT_EQ(class_of(0xBD), kNumber);
  EXPECT_EQ(class_of(0x3002), kPunctuation);
  EXPECT_EQ(class_of(0x20AC), kSymbol);
  for (uint32_t c : {0x9u, 0x20u, 0x85u, 0xA0u, 0x2028u, 0x3000u}) EXPECT_EQ(class_of(c), kSpace);
  EXPECT_EQ(class_of(0), kOther);
  EXPECT_EQ(class_of(0x10FFFF), kOther);
}

}  // namespace
}  // namespace lane::test
