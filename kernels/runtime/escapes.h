// Text as a command line spells it and as JSON spells it.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/namespace.h"
#include "runtime/unicode.h"

namespace LANE_NAMESPACE {

namespace escapes_detail {

inline int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

}  // namespace escapes_detail

/// `\n \r \t \' \" \\` and `\xNN` as the bytes they stand for; any other backslash is itself. What users of llama.cpp
/// expect of a prompt on the command line.
inline std::string replace_escapes(std::string_view s) {
  static constexpr char kFrom[] = "nrt'\"\\", kTo[] = "\n\r\t'\"\\";
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const char next = s[i] == '\\' && i + 1 < s.size() ? s[i + 1] : '\0';
    const size_t known = next == '\0' ? std::string_view::npos : std::string_view(kFrom).find(next);
    if (known != std::string_view::npos) {
      out.push_back(kTo[known]);
      ++i;
    } else if (next == 'x' && i + 3 < s.size() && escapes_detail::hex_digit(s[i + 2]) >= 0 &&
               escapes_detail::hex_digit(s[i + 3]) >= 0) {
      out.push_back(static_cast<char>(escapes_detail::hex_digit(s[i + 2]) * 16 + escapes_detail::hex_digit(s[i + 3])));
      i += 3;
    } else {
      out.push_back(s[i]);
    }
  }
  return out;
}

/// `bytes` as a JSON string with its quotes. JSON is UTF-8: every byte that belongs to no character becomes U+FFFD.
inline std::string json_string(std::string_view bytes) {
  std::string out = "\"";
  for (char c : replace_invalid_utf8(bytes)) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out.push_back(c);
    }
  }
  return out + '"';
}

}  // namespace LANE_NAMESPACE
