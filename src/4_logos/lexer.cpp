#include "lexer.h"

#include <algorithm>
#include <array>
#include <string>

#include "lane/error.h"

namespace lane::logos {
namespace {

// Locale-free: the text means the same everywhere.
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

/// Reads the tokens of one line.
class LineLexer {
 public:
  LineLexer(const Line& line, std::vector<Token>& tokens) : text_(line.text), line_(line.number), tokens_(tokens) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') return;
      if (c == ' ' || c == '\t') {
        ++at_;
      } else if (is_letter(c)) {
        word();
      } else if (is_digit(c) || (c == '-' && is_digit(peek(1)))) {
        number();
      } else if (std::string_view(".,()[]+-").find(c) != std::string_view::npos) {
        push(Token::Kind::Mark, 1);
      } else {
        fail("unexpected '" + printable(text_.substr(at_, 1)) + "'");
      }
    }
  }

 private:
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  [[noreturn]] void fail(const std::string& message) const { throw ParseError(line_, int(at_) + 1, message); }

  void push(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, text_.substr(at_, length), line_, int(at_) + 1});
    at_ += length;
  }

  void word() {
    size_t n = 1;
    while (is_word_char(peek(n))) ++n;
    const std::string text(text_.substr(at_, n));
    // LOGOS glues `a-b` and `a/b` into one token.
    if (peek(n) == '-' || peek(n) == '/')
      fail("'" + text + peek(n) + "…' is one word to LOGOS; put spaces around the operator");
    push(Token::Kind::Word, n);
  }

  size_t digits(size_t n) const {
    while (is_digit(peek(n))) ++n;
    return n;
  }

  /// -? digits (. digits)? (e -? digits)?; a dot that no digit follows ends the statement.
  void number() {
    size_t n = digits(peek(0) == '-' ? 1 : 0);
    const size_t whole = n;
    if (peek(n) == '.' && is_digit(peek(n + 1))) n = digits(n + 1);
    if (peek(n) == 'e') {
      const size_t sign = peek(n + 1) == '-' ? 1 : 0;
      if (is_digit(peek(n + 1 + sign))) n = digits(n + 1 + sign);
    }
    check_end_of_number(n);
    push(n == whole ? Token::Kind::Integer : Token::Kind::Float, n);
  }

  /// What LOGOS would read on: `1,2` is one number, `50ms` a duration, `1/2` one token.
  void check_end_of_number(size_t n) const {
    const std::string text = printable(text_.substr(at_, n), 24);
    if (peek(n) == ',' && is_digit(peek(n + 1)))
      fail("'" + text + ",…' is one number to LOGOS; write a space after the comma");
    if (is_word_char(peek(n))) fail("'" + text + peek(n) + "…' is neither a number nor a name");
    if (peek(n) == '/' || peek(n) == '-')
      fail("'" + text + peek(n) + "…' is one word to LOGOS; put spaces around the operator");
  }

  std::string_view text_;
  int line_;
  size_t at_ = 0;
  std::vector<Token>& tokens_;
};

template <size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool is_keyword(std::string_view word) {
  static constexpr std::array<std::string_view, 20> kWords = {
      "Let",  "Set",   "Show",    "mutable", "be", "to", "the", "of", "and", "with",
      "item", "items", "through", "from",    "by", "in", "on",  "at", "for", "into"};
  return contains(kWords, word);
}

bool is_number_word(std::string_view word) {
  static constexpr std::array<std::string_view, 13> kWords = {
      "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};
  return contains(kWords, word) || word.starts_with("omega_") || word.starts_with("beth_") ||
         word.starts_with("aleph_");
}

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word_char) &&
         !is_keyword(text) && !is_number_word(text);
}

Lexed lex(const std::vector<Line>& lines) {
  Lexed out;
  try {
    for (const Line& line : lines) LineLexer(line, out.tokens).run();
  } catch (const ParseError& mistake) {
    out.mistake = mistake;
  }
  const Line last = lines.empty() ? Line{} : lines.back();
  out.tokens.push_back({Token::Kind::End, "", std::max(1, last.number), int(last.text.size()) + 1});
  return out;
}

}  // namespace lane::logos
