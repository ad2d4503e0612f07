// The patterns that pre-tokenizers are made of, as scanners. Each is one regular expression, named above it, and looks
// at most one code point past what it consumes or gives up on, so that cutting a text is linear and uses a constant
// stack.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/namespace.h"
#include "runtime/unicode.h"

namespace LANE_NAMESPACE {

/// A text as code points with their classes. `offset` has one more entry: the text's length in bytes.
struct CodePoints {
  std::vector<uint32_t> point;
  std::vector<ClassSet> kind;
  std::vector<uint32_t> offset;
};

/// `text` must be well-formed UTF-8 (see replace_invalid_utf8) shorter than 4 GiB.
inline CodePoints code_points(std::string_view text) {
  CodePoints out;
  for (size_t at = 0; at < text.size();) {
    uint32_t c = 0;
    const size_t length = decode_utf8(text.substr(at), &c);
    out.point.push_back(c);
    out.kind.push_back(class_of(c));
    out.offset.push_back(static_cast<uint32_t>(at));
    at += length == 0 ? 1 : length;
  }
  out.offset.push_back(static_cast<uint32_t>(text.size()));
  return out;
}

/// A matcher returns the end of its match at `at`, or `at` where there is none. It sees nothing at or past `end`.
using Matcher = size_t (*)(const CodePoints& t, size_t at, size_t end);

namespace scan {

inline bool is(const CodePoints& t, size_t at, size_t end, ClassSet set) { return at < end && (t.kind[at] & set) != 0; }
inline bool is_char(const CodePoints& t, size_t at, size_t end, uint32_t c) { return at < end && t.point[at] == c; }
inline bool is_newline(const CodePoints& t, size_t at, size_t end) {
  return is_char(t, at, end, '\r') || is_char(t, at, end, '\n');
}
inline size_t skip(const CodePoints& t, size_t at, size_t end, ClassSet set) {
  while (is(t, at, end, set)) ++at;
  return at;
}

/// The first alternative that matches, as `a|b|c`.
template <Matcher... Alternatives>
size_t first_of(const CodePoints& t, size_t at, size_t end) {
  size_t to = at;
  ((to = Alternatives(t, at, end), to > at) || ...);
  return to;
}

/// [set]+
template <ClassSet Set>
size_t run(const CodePoints& t, size_t at, size_t end) {
  return skip(t, at, end, Set);
}

/// [set]
template <ClassSet Set>
size_t one(const CodePoints& t, size_t at, size_t end) {
  return is(t, at, end, Set) ? at + 1 : at;
}

/// ` ?[set]+`, of a set without the space
template <ClassSet Set>
size_t run_after_blank(const CodePoints& t, size_t at, size_t end) {
  const size_t from = is_char(t, at, end, ' ') ? at + 1 : at;
  const size_t to = skip(t, from, end, Set);
  return to > from ? to : at;
}

/// \s?run
template <Matcher Run>
size_t after_space(const CodePoints& t, size_t at, size_t end) {
  const size_t to = is(t, at, end, kSpace) ? Run(t, at + 1, end) : at + 1;
  return to > at + 1 ? to : Run(t, at, end);
}

/// [^\r\n\p{L}\p{N}]: what may stand before a word and go with it
inline bool is_prefix(const CodePoints& t, size_t at, size_t end) {
  return at < end && !is_newline(t, at, end) && !is(t, at, end, kLetter | kNumber);
}

/// [^\r\n\p{L}\p{N}]?[set]+
template <ClassSet Set>
size_t word(const CodePoints& t, size_t at, size_t end) {
  if (is_prefix(t, at, end) && is(t, at + 1, end, Set)) return skip(t, at + 1, end, Set);
  return skip(t, at, end, Set);
}

/// 's|'t|'re|'ve|'m|'ll|'d, as written or (`AnyCase`) in either case of ASCII letters
template <bool AnyCase>
size_t contraction(const CodePoints& t, size_t at, size_t end) {
  if (!is_char(t, at, end, '\'')) return at;
  const auto letter = [&](size_t i) {
    const uint32_t c = i < end ? t.point[i] : 0;
    return AnyCase && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  };
  const uint32_t a = letter(at + 1), b = letter(at + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
  return at;
}

/// \p{N}{1,Most}
template <size_t Most>
size_t numbers(const CodePoints& t, size_t at, size_t end) {
  size_t to = at;
  while (to - at < Most && is(t, to, end, kNumber)) ++to;
  return to;
}

/// [0-9][0-9][0-9]
inline size_t three_digits(const CodePoints& t, size_t at, size_t end) {
  for (size_t i = at; i < at + 3; ++i) {
    if (i >= end || t.point[i] < '0' || t.point[i] > '9') return at;
  }
  return at + 3;
}

/// ` ?[set]+[\r\n]*`, with Slash `[\r\n/]*`
template <ClassSet Set, bool Slash = false>
size_t run_and_newlines(const CodePoints& t, size_t at, size_t end) {
  size_t to = run_after_blank<Set>(t, at, end);
  if (to == at) return at;
  while (is_newline(t, to, end) || (Slash && is_char(t, to, end, '/'))) ++to;
  return to;
}

/// \s*[\r\n]+
inline size_t lines(const CodePoints& t, size_t at, size_t end) {
  size_t to = skip(t, at, end, kSpace);
  while (to > at && !is_newline(t, to - 1, end)) --to;
  return to;
}

/// \s+(?!\S): all of the white space at the end, else all but the last of it
inline size_t spaces_before_space(const CodePoints& t, size_t at, size_t end) {
  const size_t to = skip(t, at, end, kSpace);
  return to == end || to == at ? to : to - 1;
}

/// \s+$
inline size_t spaces_at_end(const CodePoints& t, size_t at, size_t end) {
  // The caller tries every place in turn: past the first of a run that did not match, none can.
  if (at > 0 && is(t, at - 1, end, kSpace)) return at;
  return skip(t, at, end, kSpace) == end ? end : at;
}

/// [\r\n]
inline size_t newline(const CodePoints& t, size_t at, size_t end) { return is_newline(t, at, end) ? at + 1 : at; }

/// [^\n]+|[\n]+
inline size_t line_or_breaks(const CodePoints& t, size_t at, size_t end) {
  const bool breaks = is_char(t, at, end, '\n');
  while (at < end && is_char(t, at, end, '\n') == breaks) ++at;
  return at;
}

/// [\p{P}\$\+<=>\^~\|]+, with Backtick also `
template <bool Backtick>
size_t falcon_punctuation(const CodePoints& t, size_t at, size_t end) {
  const std::string_view symbols = Backtick ? "$+<=>^~|`" : "$+<=>^~|";
  const auto is_symbol = [&](uint32_t c) { return c < 0x80 && symbols.find(static_cast<char>(c)) != symbols.npos; };
  while (is(t, at, end, kPunctuation) || (at < end && is_symbol(t.point[at]))) ++at;
  return at;
}

struct PointRange {
  uint32_t first, last;
};

/// Whether an ascending list holds the point.
template <const auto& Ranges>
bool is_in_ranges(uint32_t c) {
  const auto* range = std::lower_bound(std::begin(Ranges), std::end(Ranges), c,
                                       [](const PointRange& r, uint32_t point) { return r.last < point; });
  return range != std::end(Ranges) && c >= range->first;
}

/// [ranges]+ of an ascending list. White space is in none, whatever the list says: llama.cpp matches such expressions
/// on a text whose white space is all ASCII.
template <const auto& Ranges>
size_t run_of_ranges(const CodePoints& t, size_t at, size_t end) {
  while (at < end && is_in_ranges<Ranges>(t.point[at]) && !is(t, at, end, kSpace)) ++at;
  return at;
}

// Letters with case, as DeepSeek's tokenizer lists them: Unicode has more by now.
inline constexpr PointRange kDeepseekLetters[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},
    {0x376, 0x377},     {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},
    {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},
    {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};
// [!-/:-~！-／：-～‘-‟　-。]
inline constexpr PointRange kDeepseekPunctuation[] = {{0x21, 0x2F},     {0x3A, 0x7E},     {0x2018, 0x201F},
                                                      {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
// [一-龥ࠀ-一가-퟿]
inline constexpr PointRange kDeepseekIdeographs[] = {{0x800, 0x9FA5}, {0xAC00, 0xD7FF}};
// [一-龥぀-ゟ゠-ヿ]
inline constexpr PointRange kIdeographsAndKana[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};

// Blocks of Han ideographs. The script \p{Han} that kimi-k2's expression names has numerals and marks besides;
// llama.cpp takes these.
inline constexpr PointRange kHan[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
    {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2CEB0, 0x2EBEF}, {0x2F800, 0x2FA1F},
};

/// [ASCII punctuation][A-Za-z]+
inline size_t mark_and_latin(const CodePoints& t, size_t at, size_t end) {
  const auto latin = [&](size_t i) { return i < end && t.point[i] < 0x80 && (t.kind[i] & kLetter) != 0; };
  if (at >= end || t.point[at] >= 0x80 || !is(t, at, end, kPunctuation | kSymbol) || !latin(at + 1)) return at;
  size_t to = at + 1;
  while (latin(to)) ++to;
  return to;
}

/// [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
inline size_t letters_and_marks(const CodePoints& t, size_t at, size_t end) {
  constexpr ClassSet kWord = kLetter | kMark;
  const bool prefix = at < end && !is_newline(t, at, end) && !is(t, at, end, kLetter | kPunctuation | kSymbol);
  if (prefix && is(t, at + 1, end, kWord)) return skip(t, at + 1, end, kWord);
  return skip(t, at, end, kWord);
}

// Words that change case once: X is (?=\p{L})[^a-z] and Y (?=\p{L})[^A-Z]. The expressions that models were trained
// with name \p{Lu} and \p{Ll}; llama.cpp reads them so, and letters beyond ASCII are of both cases.
inline bool is_letter_but(const CodePoints& t, size_t at, size_t end, uint32_t first) {
  return is(t, at, end, kLetter) && (t.point[at] < first || t.point[at] > first + 25);
}
inline bool is_x(const CodePoints& t, size_t at, size_t end) { return is_letter_but(t, at, end, 'a'); }
inline bool is_y(const CodePoints& t, size_t at, size_t end) { return is_letter_but(t, at, end, 'A'); }

/// X*Y+
inline size_t capitalized(const CodePoints& t, size_t at, size_t end) {
  size_t upper = at;
  while (is_x(t, upper, end)) ++upper;
  size_t to = upper;
  while (is_y(t, to, end)) ++to;
  if (to > upper) return to;
  // X* took all of Y's: it gives back to the last that Y can have.
  while (upper > at && !is_y(t, upper - 1, end)) --upper;
  return upper;
}

/// X+Y*
inline size_t upper_case(const CodePoints& t, size_t at, size_t end) {
  size_t to = at;
  while (is_x(t, to, end)) ++to;
  if (to == at) return at;
  while (is_y(t, to, end)) ++to;
  return to;
}

/// [\p{L}&&[^Han]]+
inline size_t letters_but_han(const CodePoints& t, size_t at, size_t end) {
  while (is(t, at, end, kLetter) && !is_in_ranges<kHan>(t.point[at])) ++at;
  return at;
}

/// [^\r\n\p{L}\p{N}]?part
template <Matcher Part>
size_t with_prefix(const CodePoints& t, size_t at, size_t end) {
  const size_t to = is_prefix(t, at, end) ? Part(t, at + 1, end) : at + 1;
  return to > at + 1 ? to : Part(t, at, end);
}

/// [^\r\n\p{L}\p{N}]?X*Y+|[^\r\n\p{L}\p{N}]?X+Y*
constexpr Matcher cased_word = first_of<with_prefix<capitalized>, with_prefix<upper_case>>;

/// A word with a contraction in any case after it where there is one
template <Matcher Word>
size_t contracted(const CodePoints& t, size_t at, size_t end) {
  const size_t to = Word(t, at, end);
  return to > at ? contraction<true>(t, to, end) : at;
}

/// [^\s\p{L}\p{N}] as a set, and others of the same kind
constexpr ClassSet kPlainMarks = static_cast<ClassSet>(~(kSpace | kLetter | kNumber));
constexpr ClassSet kPlainMarksOnly = static_cast<ClassSet>(kPlainMarks & ~kMark);

/// \s*[\r\n]+|\s+(?!\S)|\s+
constexpr Matcher white_space = first_of<lines, spaces_before_space, run<kSpace>>;

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)
constexpr Matcher gpt2 = first_of<contraction<false>, run_after_blank<kLetter>, run_after_blank<kNumber>,
                                  run_after_blank<kPlainMarks>, spaces_before_space>;

/// (?i:contraction)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,Digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|white space
template <size_t Digits>
constexpr Matcher llama3 =
    first_of<contraction<true>, word<kLetter>, numbers<Digits>, run_and_newlines<kPlainMarks>, white_space>;

/// The same with marks as letters
constexpr Matcher qwen35 =
    first_of<contraction<true>, word<kLetter | kMark>, numbers<1>, run_and_newlines<kPlainMarksOnly>, white_space>;

/// As llama3<1>, newlines apart from what precedes them
constexpr Matcher seed_coder =
    first_of<contraction<true>, word<kLetter>, numbers<1>, run_after_blank<kPlainMarks>, white_space>;

constexpr Matcher deepseek_v3 =
    first_of<mark_and_latin, letters_and_marks, run_and_newlines<kPunctuation | kSymbol>, white_space>;

constexpr Matcher gpt4o =
    first_of<contracted<cased_word>, numbers<3>, run_and_newlines<kPlainMarks, true>, white_space>;
constexpr Matcher tekken = first_of<cased_word, numbers<1>, run_and_newlines<kPlainMarks, true>, white_space>;
constexpr Matcher kimi_k2 = first_of<run_of_ranges<kHan>, contracted<with_prefix<letters_but_han>>, numbers<3>,
                                     run_and_newlines<kPlainMarks>, white_space>;

}  // namespace scan
}  // namespace LANE_NAMESPACE
