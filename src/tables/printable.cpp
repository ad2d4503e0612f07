#include <algorithm>
#include <cstdint>

#include "lane/error.h"

namespace lane {
namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: no valid UTF-8 stands here
};

/// Decodes the UTF-8 character at the start of `text`; overlong forms, surrogates and values past U+10FFFF are invalid.
CodePoint first_character(std::string_view text) {
  const auto lead = uint8_t(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  uint32_t value = lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; i++) {
    if ((uint8_t(text[i]) & 0xC0) != 0x80) return {};
    value = value << 6 | (uint8_t(text[i]) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  return value < kSmallest[bytes] || surrogate || value > 0x10FFFF ? CodePoint{} : CodePoint{value, bytes};
}

/// Controls (C0, C1, line and paragraph separators), invisible and bidirectional ones, and what delimits text in
/// messages.
bool must_escape(uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
  const bool invisible = c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
                         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
  return control || invisible || c == '\'' || c == '"' || c == '\\';
}

std::string escaped(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += "\\x";
    out += kHex[uint8_t(c) >> 4];
    out += kHex[uint8_t(c) & 15];
  }
  return out;
}

}  // namespace

std::string printable(std::string_view bytes, size_t limit) {
  std::string out;
  while (!bytes.empty()) {
    const CodePoint c = first_character(bytes);
    const std::string_view piece = bytes.substr(0, std::max<size_t>(c.bytes, 1));
    const std::string text = c.bytes == 0 || must_escape(c.value) ? escaped(piece) : std::string(piece);
    if (out.size() + text.size() > limit) return out + "…";
    out += text;
    bytes.remove_prefix(piece.size());
  }
  return out;
}

}  // namespace lane
