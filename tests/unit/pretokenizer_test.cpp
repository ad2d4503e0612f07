// Every scanner against PCRE2 running the regular expressions that it stands for.
#include "runtime/pretokenizer.h"

#include <gtest/gtest.h>

#define PCRE2_CODE_UNIT_WIDTH 32
#include <pcre2.h>

#include <chrono>
#include <map>
#include <random>

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;
using Points = std::u32string;
using Patterns = std::vector<std::string>;

const std::string kContraction = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const std::string kWhiteSpace = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
const std::string kLlama3 =
    kContraction + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + kWhiteSpace;
const std::string kQwen2 = kContraction + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + kWhiteSpace;
// As llama.cpp reads them: letters beyond ASCII are of both cases.
const std::string kX = R"((?:(?=\p{L})[^a-z]))", kY = R"((?:(?=\p{L})[^A-Z]))";

std::string cased(const std::string& after, const std::string& digits) {
  const std::string prefix = R"([^\r\n\p{L}\p{N}]?)";
  return prefix + kX + "*" + kY + "+" + after + "|" + prefix + kX + "+" + kY + "*" + after + "|" + digits +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + kWhiteSpace;
}

/// The ranges of a scanner's list as a class. The list itself is checked against points on both sides of its ends.
template <class Ranges>
std::string class_of_ranges(const Ranges& ranges) {
  std::string out = "[";
  for (const auto& r : ranges) {
    char text[40];
    std::snprintf(text, sizeof text, "\\x{%X}-\\x{%X}", r.first, r.last);
    out += text;
  }
  return out + "]+";
}

Patterns patterns_of(const std::string& name) {
  static const std::string kFalcon = R"([\p{P}\$\+<=>\^~\|`]+)", kDigits = "[0-9][0-9][0-9]";
  static const Patterns deepseek3 = {
      R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" +
          kWhiteSpace};
  static const std::map<std::string, Patterns> special = {
      {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", kDigits}},
      {"falcon", {kFalcon, kGpt2, kDigits}},
      {"laguna", {R"([^\n]+|[\n]+)", kQwen2}},
      {"qwen35",
       {kContraction + R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" + kWhiteSpace}},
      {"seed-coder", {kContraction + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" + kWhiteSpace}},
      {"deepseek-llm",
       {R"([\r\n])", R"(\s?)" + class_of_ranges(scan::kDeepseekLetters),
        R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}-\x{3002}]+)", R"(\s+\z)",
        R"((?:(?!\s)[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}])+)", R"(\p{N}+)"}},
      {"deepseek-coder",
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
        R"((?:(?!\s)[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}])+)", R"(\p{N})"}},
      {"deepseek-v3", deepseek3},
      {"hunyuan-dense", deepseek3},
      {"joyai-llm", deepseek3},
      {"hy_v4", deepseek3},
      {"kimi-k2",
       {class_of_ranges(scan::kHan) + R"(|[^\r\n\p{L}\p{N}]?(?:(?!)" + class_of_ranges(scan::kHan) + R"()\p{L})+)" +
        kContraction + R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + kWhiteSpace}},
      {"tekken", {cased("", R"(\p{N})")}},
      {"bailingmoe",
       {kContraction + R"(|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
  };
  static const std::map<std::string, std::vector<std::string>> families = {
      {"gpt2",
       {"gpt-2", "phi-2", "exaone4", "gigachat", "mellum", "mpt", "olmo", "jais", "trillion", "granite-docling",
        "modern-bert", "a.x-4.0"}},
      {"digits", {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"}},
      {"llama3",
       {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "glm4", "glm5",
        "chatglm-bpe", "dbrx", "smaug-bpe"}},
      {"qwen2",
       {"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "grok-2", "solar-open", "kormo", "bailingmoe2",
        "llada-moe"}},
      {"gpt4o", {"gpt-4o", "llama4", "kanana2", "minimax-m2"}},
  };
  static const std::map<std::string, Patterns> of_family = {
      {"gpt2", {kGpt2}},
      {"digits", {R"(\p{N})", kGpt2}},
      {"llama3", {kLlama3}},
      {"qwen2", {kQwen2}},
      {"gpt4o", {cased(kContraction + "?", R"(\p{N}{1,3})")}},
  };
  if (special.count(name)) return special.at(name);
  for (const auto& [family, names] : families) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return of_family.at(family);
  }
  return {};
}

class Regex {
 public:
  explicit Regex(const std::string& pattern) {
    const Points wide(pattern.begin(), pattern.end());
    int error = 0;
    size_t offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(wide.data()), wide.size(), PCRE2_UTF | PCRE2_UCP, &error,
                          &offset, nullptr);
    EXPECT_NE(code_, nullptr) << pattern << " at " << offset;
    match_ = pcre2_match_data_create(1, nullptr);
  }
  ~Regex() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Regex(const Regex&) = delete;

  /// Matches and what lies between, in order.
  void split(const Points& text, std::vector<Points>* out) const {
    size_t at = 0;
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    while (at < text.size() && pcre2_match(code_, subject, text.size(), at, PCRE2_NO_UTF_CHECK, match_, nullptr) > 0) {
      const size_t* ends = pcre2_get_ovector_pointer(match_);
      if (ends[0] > at) out->push_back(text.substr(at, ends[0] - at));
      out->push_back(text.substr(ends[0], ends[1] - ends[0]));
      at = ends[1];
    }
    if (at < text.size()) out->push_back(text.substr(at));
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

std::string utf8(const Points& points) {
  std::string out;
  for (char32_t c : points) append_utf8(&out, c);
  return out;
}

std::vector<std::string> expected_words(const std::vector<std::unique_ptr<Regex>>& regexes, const Points& text) {
  std::vector<Points> pieces = {text};
  for (const auto& regex : regexes) {
    std::vector<Points> cut;
    for (const Points& piece : pieces) regex->split(piece, &cut);
    pieces.swap(cut);
  }
  std::vector<std::string> words;
  for (const Points& piece : pieces) words.push_back(utf8(piece));
  return words;
}

std::vector<std::string> words_of(const PretokenizerRow& row, const Points& points) {
  const std::string text = utf8(points);
  std::vector<std::string> words;
  size_t begin = 0;
  for (size_t end : pretokenize(row, code_points(text))) {
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Old assignments alone: the two libraries may know different versions of Unicode. U+180E is white space to PCRE2
// alone.
const Points kInteresting =
    U"   "
    U"\t\n\r\n\v\u0085\u00A0\u2003\u3000\u2028''''sStTmMdDrReEvVlLaAzZbB0123456789/"
    U".,!?-_()[]{}<>=+*&^%$#@~|`\\\"\u00AC\u00BD\u00B2"
    U"éÉßſıİñµªºǅƻʔ\u0301\u0308\u0327\u02B0\u02C6ΑαΩωЖжԱա\u05D0\u0627\u0660\u0915\u093E\u094D\u0967\u0E01\u0E48\u1F88"
    U"\u1FBE\u2126\u212A"
    U"⺀⼀々〇〡㐀豈𠀀中日本語のテカ、。「，！５Ａｚ가나"
    U"\u1100\u2018\u201F\u00AD\u200B\u200D\uFE0F\uFEFF\u2160\u2460€☃✅🚀🦙"
    U"\U0001F468"
    U"\U0001D518\U00010400\U0001E900\uFFFD";

Points random_text(std::mt19937* random) {
  Points text;
  const size_t length = (*random)() % 24;
  while (text.size() < length) {
    const char32_t c =
        (*random)() % 8 == 0 ? 0x20 + (*random)() % 0x2E00 : kInteresting[(*random)() % kInteresting.size()];
    // Points assigned lately, or not at all, may differ.
    if (c != 0x180E && (class_of(c) != kOther || c < 0x3000))
      text.append((*random)() % 6 == 0 ? 1 + (*random)() % 4 : 1, c);
  }
  return text;
}

class Pretokenizer : public testing::TestWithParam<int> {};

TEST_P(Pretokenizer, CutsAsItsRegularExpressions) {
  const PretokenizerRow& row = kPretokenizers[GetParam()];
  std::vector<std::unique_ptr<Regex>> regexes;
  for (const std::string& pattern : patterns_of(row.name)) regexes.push_back(std::make_unique<Regex>(pattern));
  ASSERT_FALSE(regexes.empty()) << row.name << " has no patterns here";
  std::mt19937 random(1);
  std::vector<Points> texts = {U"",
                               U"I'm you'RE WE'LL 'tis'",
                               U"  a  b\n\n  c \r\n ",
                               U"1234567 12,345.678",
                               U"HelloWORLDHello helloÉtÉ",
                               U"ab   ",
                               U"\n \n x\n",
                               U"\u3000\u3000中",
                               U" \u0301a\u0301\u0301B",
                               U"a/b//\n/c"};
  for (int i = 0; i < 3000; ++i) texts.push_back(random_text(&random));
  for (const Points& text : texts)
    ASSERT_EQ(words_of(row, text), expected_words(regexes, text)) << row.name << " '" << utf8(text) << "'";
}

TEST_P(Pretokenizer, IsLinear) {
  const PretokenizerRow& row = kPretokenizers[GetParam()];
  for (char32_t c : {U'a', U'A', U' ', U'\n', U'1', U'\'', U'!', U'\u4E2D', U'\u0301'}) {
    const Points text = Points(1 << 18, c) + U"x";
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(words_of(row, text).empty());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << row.name << " " << uint32_t(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Pretokenizer, testing::Range(0, static_cast<int>(std::size(kPretokenizers))));

TEST(Pretokenizers, BlocksOfHanBeginWithHan) {
  const Regex han("\\p{sc:Han}");
  for (const scan::PointRange& range : scan::kHan) {
    std::vector<Points> pieces;
    han.split(Points{U'!', range.first}, &pieces);
    EXPECT_EQ(pieces.size(), 2u) << std::hex << range.first;
    EXPECT_TRUE(scan::is_in_ranges<scan::kHan>(range.first) && scan::is_in_ranges<scan::kHan>(range.last));
  }
}

TEST(Pretokenizers, AreFoundByName) {
  EXPECT_STREQ(kPretokenizers[find_pretokenizer("qwen2")].name, "qwen2");
  EXPECT_EQ(find_pretokenizer("qwen"), -1);
  EXPECT_EQ(find_pretokenizer(""), -1);
}

}  // namespace
}  // namespace lane::test
