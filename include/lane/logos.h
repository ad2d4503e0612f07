// Pass 4: LOGOS text to a syntax tree. Decides nothing: it parses, or fails with line and column. docs/logos.md has the
// grammar.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lane {

/// `item (pos + 1)`: a name plus a constant, or a constant alone (empty name). 1-based as LOGOS counts.
struct Subscript {
  std::string name;
  int64_t offset = 0;
  bool operator==(const Subscript&) const = default;
};

/// An operand: a name; or `item S of name`; or `items S through T of name`.
struct Operand {
  std::string name;
  bool indexed = false;
  Subscript from{}, through{};  // both set where indexed; equal for `item`
  bool operator==(const Operand&) const = default;
};

struct OptionText {
  std::string name;  // "value width"
  double value = 0;
  bool integer = false;  // as written
  bool operator==(const OptionText&) const = default;
};

struct PhraseValue {   // `the <phrase> of a and b with option 1 and …`, or the call spelling phraseName(a, b, 1, …)
  std::string phrase;  // "matrix product"; the call spelling is resolved to the phrase by the parser
  std::vector<Operand> operands;
  std::vector<OptionText> options;
  bool operator==(const PhraseValue&) const = default;
};
struct ListValue {  // `[a, b]`: rows one below the other
  std::vector<std::string> names;
  bool operator==(const ListValue&) const = default;
};
struct Declaration {  // `a new Quantized with rows 256 and columns 64`
  std::string kind;
  std::vector<OptionText> options;
  bool operator==(const Declaration&) const = default;
};

struct Statement {
  enum class Kind { Let, Set, Show } kind = Kind::Let;
  int line = 0;
  bool is_mutable = false;  // Let mutable
  Operand target;           // Let and Show: a plain name; Set: a name or a place
  std::variant<std::monostate, Declaration, PhraseValue, ListValue, Operand> value;
};

struct SyntaxTree {
  std::vector<Statement> statements;
};

SyntaxTree parse_logos(std::string_view text);  // throws ParseError
void verify(const SyntaxTree& tree);            // throws InternalError
/// Canonical text: LF, one statement a line, single spaces, shortest round-trip floats. parse(to_text(t)) equals t.
std::string to_text(const SyntaxTree& tree);
std::string to_text(const Statement& statement);  // one statement, no newline

}  // namespace lane
