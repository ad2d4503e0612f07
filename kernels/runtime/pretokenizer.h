// Pre-tokenizers: how a text is cut into words before byte-level BPE merges within each. A checkpoint names one in
// `tokenizer.ggml.pre`; each is a list of regular expressions, applied one after the other to the pieces the one before
// left. They are written here as scanners: every pattern is an ordered choice of simple matchers that look at most one
// code point past what they consume, so the whole is linear in the text and uses a constant stack.
#pragma once
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
  size_t at = 0;
  while (at < text.size()) {
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
inline size_t skip_newlines(const CodePoints& t, size_t at, size_t end) {
  while (is_newline(t, at, end)) ++at;
  return at;
}

/// The first alternative that matches, as `a|b|c` of a regular expression.
template <Matcher... Alternatives>
size_t first_of(const CodePoints& t, size_t at, size_t end) {
  size_t to = at;
  ((to = Alternatives(t, at, end), to > at) || ...);
  return to;
}

/// 's|'t|'re|'ve|'m|'ll|'d, as written or (`AnyCase`) in either case of ASCII letters.
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

/// [^\r\n\p{L}\p{N}]?[set]+
template <ClassSet Set>
size_t word_after_any(const CodePoints& t, size_t at, size_t end) {
  const bool prefix = at < end && !is_newline(t, at, end) && !is(t, at, end, kLetter | kNumber);
  if (prefix && is(t, at + 1, end, Set)) return skip(t, at + 1, end, Set);
  return skip(t, at, end, Set);
}

/// ` ?[set]+`, of a set without the space
template <ClassSet Set>
size_t run_after_space(const CodePoints& t, size_t at, size_t end) {
  const size_t from = is_char(t, at, end, ' ') ? at + 1 : at;
  const size_t to = skip(t, from, end, Set);
  return to > from ? to : at;
}

/// ` ?[set]+[\r\n]*`
template <ClassSet Set>
size_t run_with_newlines(const CodePoints& t, size_t at, size_t end) {
  const size_t to = run_after_space<Set>(t, at, end);
  return to > at ? skip_newlines(t, to, end) : at;
}

/// \p{N}{1,Most}; 0: \p{N}+
template <size_t Most>
size_t numbers(const CodePoints& t, size_t at, size_t end) {
  size_t to = at;
  while ((Most == 0 || to - at < Most) && is(t, to, end, kNumber)) ++to;
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

/// \s+
inline size_t spaces(const CodePoints& t, size_t at, size_t end) { return skip(t, at, end, kSpace); }

constexpr ClassSet kNotSpaceLetterNumber = static_cast<ClassSet>(~(kSpace | kLetter | kNumber));

/// \s*[\r\n]+|\s+(?!\S)|\s+
constexpr Matcher white_space = first_of<lines, spaces_before_space, spaces>;

/// GPT-2's pattern: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)
constexpr Matcher gpt2 = first_of<contraction<false>, run_after_space<kLetter>, run_after_space<kNumber>,
                                  run_after_space<kNotSpaceLetterNumber>, spaces_before_space>;

/// Llama 3's, Qwen 2's and their kin: the one difference is how many digits go together.
template <size_t Digits>
constexpr Matcher llama3 = first_of<contraction<true>, word_after_any<kLetter>, numbers<Digits>,
                                    run_with_newlines<kNotSpaceLetterNumber>, white_space>;

/// [0-9][0-9][0-9]
inline size_t three_digits(const CodePoints& t, size_t at, size_t end) {
  for (size_t i = at; i < at + 3; ++i) {
    if (i >= end || t.point[i] < '0' || t.point[i] > '9') return at;
  }
  return at + 3;
}

/// [\p{P}\$\+<=>\^~\|]+, with Backtick also `
template <bool Backtick>
size_t falcon_punctuation(const CodePoints& t, size_t at, size_t end) {
  const auto one = [&](size_t i) {
    if (is(t, i, end, kPunctuation)) return true;
    const uint32_t c = i < end && t.point[i] < 0x80 ? t.point[i] : 0;
    return c == '$' || c == '+' || (c >= '<' && c <= '>') || c == '^' || c == '~' || c == '|' || (Backtick && c == '`');
  };
  while (one(at)) ++at;
  return at;
}

}  // namespace scan

/// One row a name of `tokenizer.ggml.pre`. `stages` ends at the first null.
struct PretokenizerRow {
  const char* name;
  bool ignore_merges;  // a word that is a token as a whole is that token, whatever the merges say
  bool add_bos;        // where the checkpoint has no tokenizer.ggml.add_bos_token
  Matcher stages[5];
};

constexpr PretokenizerRow kPretokenizers[] = {
    {"default", false, false, {scan::falcon_punctuation<false>, scan::gpt2, scan::numbers<0>, scan::three_digits}},
    {"gpt-2", false, false, {scan::gpt2}},
    {"llama-bpe", true, true, {scan::llama3<3>}},
    {"qwen2", false, false, {scan::llama3<1>}},
};

/// The row named `name`; −1 where there is none.
inline int find_pretokenizer(std::string_view name) {
  for (size_t i = 0; i < std::size(kPretokenizers); ++i) {
    if (kPretokenizers[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

/// Cuts each of the pieces that `ends` closes (in code points) at the matches of one stage; what lies between matches
/// stays together.
inline std::vector<size_t> split_stage(const CodePoints& t, Matcher match, const std::vector<size_t>& ends) {
  std::vector<size_t> out;
  size_t at = 0;
  for (size_t end : ends) {
    size_t gap = at;
    while (at < end) {
      const size_t to = match(t, at, end);
      if (to == at) {
        ++at;
        continue;
      }
      if (gap < at) out.push_back(at);
      out.push_back(to);
      gap = at = to;
    }
    if (gap < end) out.push_back(end);
  }
  return out;
}

/// Where the words of `t` end, in bytes; ascending, the last is the text's length. Empty for an empty text.
inline std::vector<size_t> pretokenize(const PretokenizerRow& row, const CodePoints& t) {
  std::vector<size_t> ends;
  if (!t.point.empty()) ends.push_back(t.point.size());
  for (Matcher stage : row.stages) {
    if (stage == nullptr) break;
    ends = split_stage(t, stage, ends);
  }
  for (size_t& end : ends) end = t.offset[end];
  return ends;
}

}  // namespace LANE_NAMESPACE
