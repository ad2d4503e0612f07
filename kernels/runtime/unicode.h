// Code points: their classes, and UTF-8 read strictly. Classes come from runtime/unicode_tables.h, which the build
// makes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/namespace.h"
#include "runtime/unicode_tables.h"

namespace LANE_NAMESPACE {

/// Sets of classes, one bit each; a code point has exactly one. Bit n is class n of the generated table.
using ClassSet = uint16_t;
[[maybe_unused]] constexpr ClassSet kOther = 1 << 0;  // control, format, unassigned
constexpr ClassSet kUpper = 1 << 1;
constexpr ClassSet kLower = 1 << 2;
constexpr ClassSet kTitle = 1 << 3;
constexpr ClassSet kModifierLetter = 1 << 4;
constexpr ClassSet kOtherLetter = 1 << 5;
constexpr ClassSet kMark = 1 << 6;
constexpr ClassSet kNumber = 1 << 7;
constexpr ClassSet kPunctuation = 1 << 8;
constexpr ClassSet kSymbol = 1 << 9;
constexpr ClassSet kSpace = 1 << 10;  // Unicode's White_Space
constexpr ClassSet kLetter = kUpper | kLower | kTitle | kModifierLetter | kOtherLetter;

inline ClassSet class_of(uint32_t c) {
  const uint32_t key = c << 4 | 0xF;
  const uint32_t* run = std::upper_bound(std::begin(kClassRuns), std::end(kClassRuns), key) - 1;
  return static_cast<ClassSet>(1u << (*run & 0xF));
}

/// Bytes of the well-formed UTF-8 character at the start of `s`: 1 to 4, or 0 where there is none (empty, a stray
/// continuation, an overlong form, a surrogate, past U+10FFFF, cut short). The code point goes to `*c`.
inline size_t decode_utf8(std::string_view s, uint32_t* c) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  if (s.empty()) return 0;
  const uint8_t lead = byte(0);
  if (lead < 0x80) return *c = lead, 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < length) return 0;
  uint32_t value = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  if (length == 3 && (value < 0x800 || (value >= 0xD800 && value < 0xE000))) return 0;
  if (length == 4 && (value < 0x10000 || value > 0x10FFFF)) return 0;
  *c = value;
  return length;
}

inline void append_utf8(std::string* out, uint32_t c) {
  const auto tail = [&](int shift) { out->push_back(static_cast<char>(0x80 | (c >> shift & 0x3F))); };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    tail(6), tail(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    tail(12), tail(6), tail(0);
  }
}

/// `s` with every byte that belongs to no well-formed character replaced by U+FFFD.
inline std::string replace_invalid_utf8(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    uint32_t c;
    const size_t length = decode_utf8(s, &c);
    if (length == 0) out += "\xEF\xBF\xBD";
    out.append(s.data(), length);
    s.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

/// How many bytes at the end of `s` begin a well-formed character without completing it: 0 to 3.
inline size_t incomplete_utf8_tail(std::string_view s) {
  for (size_t back = 1; back <= 3 && back <= s.size(); ++back) {
    const uint8_t lead = static_cast<uint8_t>(s[s.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    const size_t length = lead < 0xC2 || lead > 0xF4 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (length <= back) return 0;
    // Complete it with each lowest and highest continuation: a lead such as E0 or ED accepts only some second bytes.
    std::string low(s.substr(s.size() - back)), high = low;
    low.append(length - back, '\x80');
    high.append(length - back, '\xBF');
    uint32_t c;
    return decode_utf8(low, &c) != 0 || decode_utf8(high, &c) != 0 ? back : 0;
  }
  return 0;
}

}  // namespace LANE_NAMESPACE
