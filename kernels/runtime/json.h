// One JSON object of a line, read strictly (RFC 8259): what a request is, and nothing deeper. Values are strings,
// numbers, words (true, false, null) and flat arrays of those; so nothing recurses, whatever a line holds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/namespace.h"
#include "runtime/escapes.h"
#include "runtime/status.h"
#include "runtime/unicode.h"

namespace LANE_NAMESPACE {

enum class JsonKind { String, Number, Word, Array };

struct JsonValue {
  JsonKind kind = JsonKind::Word;
  std::string text;              // a string's bytes, a number or a word as spelled
  std::vector<JsonValue> items;  // an array's
};

using JsonObject = std::vector<std::pair<std::string, JsonValue>>;  // in the order of the text; keys differ

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  /// `{"key": value, …}` and nothing after it. Refuses with the byte at which no JSON could go on so.
  Status object(JsonObject* out) {
    out->clear();
    if (!take('{')) return expected("'{'");
    if (!take('}')) {
      do {
        if (Status s = member(out); !s.ok()) return s;
      } while (take(','));
      if (!take('}')) return expected("',' or '}'");
    }
    skip_space();
    return at_ == text_.size() ? Status{} : expected("the end of the line");
  }

 private:
  Status member(JsonObject* out) {
    std::string key;
    skip_space();
    if (Status s = string(&key); !s.ok()) return s;
    for (const auto& [known, value] : *out) {
      if (known == key) return usage_error("key " + json_string(key) + " twice");
    }
    if (!take(':')) return expected("':'");
    JsonValue value;
    Status status = this->value(&value);
    out->emplace_back(std::move(key), std::move(value));
    return status;
  }

  Status value(JsonValue* out) {
    skip_space();
    if (peek() != '[') return scalar(out);
    ++at_;
    out->kind = JsonKind::Array;
    if (take(']')) return {};
    do {
      skip_space();
      if (Status s = scalar(&out->items.emplace_back()); !s.ok()) return s;
    } while (take(','));
    return take(']') ? Status{} : expected("',' or ']'");
  }

  Status scalar(JsonValue* out) {
    if (peek() == '"') {
      out->kind = JsonKind::String;
      return string(&out->text);
    }
    if (peek() == '-' || is_digit()) {
      out->kind = JsonKind::Number;
      return number(&out->text);
    }
    for (std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      out->text = word;
      return {};
    }
    return expected("a string, a number or a flat array of them");
  }

  /// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
  Status number(std::string* out) {
    const size_t start = at_;
    if (peek() == '-') ++at_;
    const bool zero = peek() == '0';
    if (!digits() || (zero && at_ > start + 1 + (text_[start] == '-'))) return expected("a number without more zeros");
    if (peek() == '.') {
      ++at_;
      if (!digits()) return expected("a digit");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return expected("a digit");
    }
    *out = text_.substr(start, at_ - start);
    return {};
  }

  Status string(std::string* out) {
    if (peek() != '"') return expected("a string");
    ++at_;
    while (peek() != '"') {
      uint32_t c;
      const size_t length = decode_utf8(text_.substr(at_), &c);
      if (length == 0) return expected("UTF-8 and a quote at its end");
      if (c < 0x20) return expected("no control character in a string");
      if (c == '\\') {
        if (Status s = escape(out); !s.ok()) return s;
        continue;
      }
      out->append(text_, at_, length);
      at_ += length;
    }
    ++at_;
    return {};
  }

  Status escape(std::string* out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    ++at_;
    if (const size_t known = kFrom.find(peek()); peek() != '\0' && known != std::string_view::npos) {
      out->push_back(kTo[known]);
      ++at_;
      return {};
    }
    uint32_t c;
    if (!unit(&c)) return expected("an escape of JSON");
    if (c >= 0xDC00 && c < 0xE000) return expected("a high surrogate before a low one");
    if (c >= 0xD800 && c < 0xDC00) {
      uint32_t low;
      if (peek() != '\\') return expected("the low surrogate of a pair");
      ++at_;
      if (!unit(&low) || low < 0xDC00 || low >= 0xE000) return expected("the low surrogate of a pair");
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, c);
    return {};
  }

  /// uXXXX after a backslash.
  bool unit(uint32_t* c) {
    if (peek() != 'u' || text_.size() - at_ < 5) return false;
    *c = 0;
    for (size_t i = 1; i <= 4; ++i) {
      const int digit = escapes_detail::hex_digit(text_[at_ + i]);
      if (digit < 0) return false;
      *c = *c * 16 + static_cast<uint32_t>(digit);
    }
    at_ += 5;
    return true;
  }

  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }
  bool digits() {
    const size_t start = at_;
    while (is_digit()) ++at_;
    return at_ > start;
  }
  /// The next byte, 0 at the end: no token of JSON begins with that.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Status expected(const std::string& what) const {
    return usage_error("no JSON at byte " + std::to_string(at_) + ": expected " + what);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace LANE_NAMESPACE
