// Token ids to text. Bytes are never altered: what the tokens spell is what is written. A stream holds back the
// beginning of a character until a later token completes it; bytes that can complete nothing pass as they are, and so
// does a beginning still held at the end.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/namespace.h"
#include "runtime/unicode.h"
#include "runtime/vocabulary.h"

namespace LANE_NAMESPACE {

namespace detokenizer_detail {

inline std::string spaces_of_spm(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool space = text.compare(i, 3, "\xE2\x96\x81") == 0;
    out.push_back(space ? ' ' : text[i]);
    i += space ? 3 : 1;
  }
  return out;
}

/// Letters that stand for no byte keep their own UTF-8.
inline std::string bytes_of_letters(std::string_view text) {
  static const std::unordered_map<uint32_t, char> bytes = [] {
    std::unordered_map<uint32_t, char> out;
    for (uint32_t b = 0; b < 256; ++b) out[byte_letters()[b]] = static_cast<char>(b);
    return out;
  }();
  std::string out;
  while (!text.empty()) {
    uint32_t c = 0;
    const size_t length = std::max<size_t>(1, decode_utf8(text, &c));
    const auto byte = bytes.find(c);
    byte != bytes.end() ? out.push_back(byte->second) : static_cast<void>(out.append(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return out;
}

/// The byte of a token named <0xNN>; nothing where the name is another.
inline std::string byte_of_name(std::string_view name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (name.size() != 6 || name.substr(0, 3) != "<0x" || digit(name[3]) < 0 || digit(name[4]) < 0) return {};
  return std::string(1, static_cast<char>(digit(name[3]) * 16 + digit(name[4])));
}

}  // namespace detokenizer_detail

/// The bytes that token `id` writes. Tokens that steer the model and unused ones write nothing, and neither do ids that
/// are no token.
inline std::string token_bytes(const Vocabulary& v, int32_t id) {
  if (!v.is_token(id)) return {};
  const std::string_view text = v.pieces.text(id);
  const bool spm = v.source.model == TokenizerModel::Spm;
  switch (v.type(id)) {
    case TokenType::Normal:
      return spm ? detokenizer_detail::spaces_of_spm(text) : detokenizer_detail::bytes_of_letters(text);
    case TokenType::UserDefined:
      return std::string(text);
    case TokenType::Byte:
      return detokenizer_detail::byte_of_name(text);
    default:
      return {};
  }
}

/// Concatenated, what push() and finish() return is the tokens' bytes in order; push() never ends inside a character.
class TextStream {
 public:
  explicit TextStream(const Vocabulary& vocabulary) : v_(vocabulary) {}

  std::string push(int32_t id) {
    std::string text = std::move(held_) + token_bytes(v_, id);
    const size_t tail = incomplete_utf8_tail(text);
    held_ = text.substr(text.size() - tail);
    text.resize(text.size() - tail);
    return text;
  }

  std::string finish() {
    std::string rest = std::move(held_);
    held_.clear();
    return rest;
  }

 private:
  const Vocabulary& v_;
  std::string held_;
};

}  // namespace LANE_NAMESPACE
