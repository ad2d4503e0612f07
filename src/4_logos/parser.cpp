// Tokens to statements, by recursive descent without recursion: the grammar of a step nests nowhere.
#include <algorithm>
#include <charconv>
#include <string>

#include "lane/error.h"
#include "lane/logos.h"
#include "lane/ops.h"
#include "lexer.h"

namespace lane {
namespace {

using logos::Token;

class Parser {
 public:
  explicit Parser(const std::vector<Token>& tokens) : tokens_(tokens) {}

  SyntaxTree program() {
    SyntaxTree tree;
    while (peek().kind != Token::Kind::End) tree.statements.push_back(statement());
    return tree;
  }

 private:
  // --- tokens ---
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool next_is(std::string_view text) const { return peek().kind != Token::Kind::End && peek().text == text; }

  [[noreturn]] static void fail(const Token& token, const std::string& message) {
    throw ParseError(token.line, token.column, message);
  }
  [[noreturn]] void expected(const std::string& what) const {
    const Token& t = peek();
    fail(t, "expected " + what + ", found " +
                (t.kind == Token::Kind::End ? "the end" : "'" + printable(t.text, 40) + "'"));
  }
  bool accept(std::string_view text) {
    if (!next_is(text)) return false;
    take();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) expected("'" + std::string(text) + "'");
  }

  std::string name(const std::string& what = "a name") {
    const Token& t = peek();
    if (t.kind != Token::Kind::Word) expected(what);
    if (logos::is_number_word(t.text))
      fail(t, "'" + std::string(t.text) + "' is a number to LOGOS and cannot be a name");
    if (!logos::is_name(t.text))
      fail(t, "'" + std::string(t.text) + "' is a word of the language and cannot be a name");
    return std::string(take().text);
  }

  int64_t integer(const std::string& what) {
    const Token& t = peek();
    if (t.kind != Token::Kind::Integer) expected(what);
    int64_t value = 0;
    if (std::from_chars(t.text.data(), t.text.data() + t.text.size(), value).ec != std::errc())
      fail(t, "'" + printable(t.text, 24) + "' is too large");
    take();
    return value;
  }

  OptionText number() {
    const Token& t = peek();
    OptionText option;
    if (t.kind == Token::Kind::Integer) {
      constexpr int64_t kExact = int64_t(1) << 53;  // beyond it a double skips integers
      const int64_t value = integer("a number");
      if (value < -kExact || value > kExact) fail(t, "'" + std::string(t.text) + "' is too large");
      option.value = double(value);
      option.integer = true;
    } else if (t.kind == Token::Kind::Float) {
      if (std::from_chars(t.text.data(), t.text.data() + t.text.size(), option.value).ec != std::errc())
        fail(t, "'" + printable(t.text, 24) + "' is out of range");
      take();
    } else {
      expected("a number");
    }
    return option;
  }

  // --- statements ---
  Statement statement() {
    Statement s;
    const Token& first = peek();
    s.line = first.line;
    if (accept("Let")) {
      let(s);
    } else if (accept("Set")) {
      set(s);
    } else if (accept("Show")) {
      s.kind = Statement::Kind::Show;
      s.target.name = name();
    } else if (first.kind == Token::Kind::Word) {
      fail(first, "'" + printable(first.text, 24) + "' starts no statement of a step; a statement is Let, Set or Show");
    } else {
      expected("a statement (Let, Set or Show)");
    }
    expect(".");
    return s;
  }

  void let(Statement& s) {
    s.kind = Statement::Kind::Let;
    s.is_mutable = accept("mutable");
    s.target.name = name();
    expect("be");
    if (next_is("a") && peek(1).text == "new") {
      s.value = declaration();
    } else {
      value(s);
    }
  }

  void set(Statement& s) {
    s.kind = Statement::Kind::Set;
    s.target = operand();
    expect("to");
    value(s);
  }

  Declaration declaration() {
    expect("a");
    expect("new");
    Declaration d;
    d.kind = name("a kind (Constant, Quantized, Carried or Input)");
    if (accept("with")) d.options = options();
    return d;
  }

  void value(Statement& s) {
    if (next_is("the")) {
      s.value = phrase();
    } else if (next_is("[")) {
      s.value = list();
    } else if (peek().kind == Token::Kind::Word && peek(1).text == "(" && !next_is("item") && !next_is("items")) {
      s.value = call();
    } else if (peek().kind == Token::Kind::Word) {
      s.value = operand();
    } else {
      expected("a value: 'the <phrase> of …', a call, 'item … of …', '[…]' or a name");
    }
    if (next_is("+") || next_is("-"))
      fail(peek(), "'" + std::string(peek().text) +
                       "' is LOGOS's own; arrays take phrases, as 'the elementwise sum of x and y'");
  }

  // --- values ---
  PhraseValue phrase() {
    expect("the");
    PhraseValue v;
    v.phrase = words("a phrase");
    expect("of");
    do v.operands.push_back(operand());
    while (accept("and"));
    if (accept("with")) v.options = options();
    if (const OpRow* row = find_phrase(v.phrase)) order(v.options, *row);
    return v;
  }

  /// One word or more, separated by single spaces in the result: a phrase or an option's name.
  std::string words(const std::string& what) {
    std::string text;
    while (peek().kind == Token::Kind::Word && !next_is("of")) {
      if (!text.empty()) text += ' ';
      text += take().text;
    }
    if (text.empty()) expected(what);
    return text;
  }

  std::vector<OptionText> options() {
    std::vector<OptionText> list;
    do {
      const std::string word = words("an option");
      list.push_back(number());
      list.back().name = word;
    } while (accept("and"));
    return list;
  }

  /// Known options in the table's order, whatever the order they were written in; unknown ones stay, last, to be
  /// refused.
  static void order(std::vector<OptionText>& options, const OpRow& row) {
    const std::vector<OptionKey> keys = all_options(row);
    const auto rank = [&](const OptionText& o) {
      return std::find_if(keys.begin(), keys.end(), [&](OptionKey k) { return option_name(k) == o.name; }) -
             keys.begin();
    };
    std::stable_sort(options.begin(), options.end(),
                     [&](const OptionText& a, const OptionText& b) { return rank(a) < rank(b); });
  }

  ListValue list() {
    expect("[");
    ListValue v;
    do v.names.push_back(name());
    while (accept(","));
    expect("]");
    return v;
  }

  Operand operand() {
    Operand o;
    if (accept("item")) {
      o.from = o.through = subscript();
      o.indexed = true;
      expect("of");
    } else if (accept("items")) {
      o.from = subscript();
      expect("through");
      o.through = subscript();
      o.indexed = true;
      expect("of");
    }
    o.name = name();
    return o;
  }

  Subscript subscript() {
    Subscript s;
    if (peek().kind == Token::Kind::Word) {
      s.name = name();
    } else if (accept("(")) {
      s.name = name();
      const bool minus = next_is("-");
      if (!minus && !next_is("+")) expected("'+' or '-'");
      take();
      s.offset = integer("an integer");
      if (s.offset < 0) fail(peek(), "a sign where an integer is expected");
      if (minus) s.offset = -s.offset;
      expect(")");
    } else {
      const Token& t = peek();
      s.offset = integer("an index: an integer, a name or '(name + integer)'");
      if (s.offset < 1) fail(t, "item " + std::string(t.text) + ": items count from 1");
    }
    return s;
  }

  /// phraseName(operands, numbers): the numbers are the required options, or every option with 0 for one that is
  /// absent.
  PhraseValue call() {
    const Token& callee = take();
    const OpRow* row = find_call(callee.text);
    if (!row) fail(callee, "unknown op '" + printable(callee.text, 40) + "'");
    PhraseValue v;
    v.phrase = row->phrase;
    expect("(");
    std::vector<OptionText> numbers;
    do {
      if (peek().kind == Token::Kind::Integer || peek().kind == Token::Kind::Float) {
        numbers.push_back(number());
      } else if (numbers.empty()) {
        v.operands.push_back(operand());
      } else {
        expected("a number: operands come first");
      }
    } while (accept(","));
    expect(")");
    v.options = named(callee, *row, numbers);
    return v;
  }

  static std::vector<OptionText> named(const Token& callee, const OpRow& row, const std::vector<OptionText>& numbers) {
    const std::vector<OptionKey> all = all_options(row);
    const bool short_form = numbers.size() == row.required.size();
    std::vector<OptionKey> keys = short_form ? row.required : all;
    std::sort(keys.begin(), keys.end());
    if (numbers.size() != keys.size())
      fail(callee, std::string(row.call) + " takes " + std::to_string(row.required.size()) + " numbers" +
                       (row.optional.empty() ? "" : " or " + std::to_string(all.size())) + " (" + names(keys) +
                       "), found " + std::to_string(numbers.size()));
    std::vector<OptionText> options;
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool required = std::find(row.required.begin(), row.required.end(), keys[i]) != row.required.end();
      if (!required && numbers[i].value == 0) continue;
      options.push_back(numbers[i]);
      options.back().name = option_name(keys[i]);
    }
    return options;
  }

  static std::string names(const std::vector<OptionKey>& keys) {
    std::string text;
    for (OptionKey key : keys) text += (text.empty() ? "" : ", ") + std::string(option_name(key));
    return text.empty() ? "none" : text;
  }

  const std::vector<Token>& tokens_;
  size_t at_ = 0;
};

}  // namespace

SyntaxTree parse_logos(std::string_view text) {
  const logos::Lexed lexed = logos::lex(logos::main_lines(text));
  SyntaxTree tree;
  try {
    tree = Parser(lexed.tokens).program();
  } catch (const ParseError& found) {
    const auto place = [](const ParseError& e) { return std::pair(e.line, e.column); };
    if (lexed.mistake && place(*lexed.mistake) <= place(found)) throw *lexed.mistake;
    throw;
  }
  if (lexed.mistake) throw *lexed.mistake;
  return tree;
}

}  // namespace lane
