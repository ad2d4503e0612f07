// A tree is sound where printing it and parsing the text gives it back.
#include <cmath>

#include "lane/error.h"
#include "lane/logos.h"
#include "lexer.h"

namespace lane {
namespace {

void require(bool holds, const Statement& s, const char* what) {
  if (!holds) throw InternalError("syntax tree, line " + std::to_string(s.line) + ": " + what);
}

bool sound(const Subscript& s) { return s.name.empty() ? s.offset >= 1 : logos::is_name(s.name); }

bool sound(const Operand& o) { return logos::is_name(o.name) && (!o.indexed || (sound(o.from) && sound(o.through))); }

bool sound_words(const std::string& text) {
  bool letter_next = true;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter_next ? !letter : !(letter || c == ' ' || c == '_' || (c >= '0' && c <= '9'))) return false;
    letter_next = c == ' ';
  }
  return !letter_next && (" " + text + " ").find(" of ") == std::string::npos;
}

bool sound(const std::vector<OptionText>& options) {
  constexpr double kMostInteger = 9007199254740992;  // 2^53
  for (const OptionText& o : options) {
    if (!sound_words(o.name) || !std::isfinite(o.value)) return false;
    if (o.integer && (o.value != std::trunc(o.value) || std::fabs(o.value) > kMostInteger)) return false;
  }
  return true;
}

struct Sound {
  bool operator()(std::monostate) const { return false; }
  bool operator()(const Declaration& d) const { return logos::is_name(d.kind) && sound(d.options); }
  bool operator()(const PhraseValue& v) const {
    for (const Operand& o : v.operands)
      if (!sound(o)) return false;
    return sound_words(v.phrase) && !v.operands.empty() && sound(v.options);
  }
  bool operator()(const ListValue& v) const {
    for (const std::string& name : v.names)
      if (!logos::is_name(name)) return false;
    return !v.names.empty();
  }
  bool operator()(const Operand& o) const { return sound(o); }
};

}  // namespace

void verify(const SyntaxTree& tree) {
  for (const Statement& s : tree.statements) {
    require(sound(s.target), s, "its target is no name or place");
    require(s.kind == Statement::Kind::Set || !s.target.indexed, s, "only Set takes a place");
    require(s.kind == Statement::Kind::Let || !s.is_mutable, s, "only Let is mutable");
    if (s.kind == Statement::Kind::Show) {
      require(std::holds_alternative<std::monostate>(s.value), s, "Show has a value");
      continue;
    }
    require(std::visit(Sound{}, s.value), s, "its value is none, or holds a name or a number that cannot be written");
    require(s.kind == Statement::Kind::Let || !std::holds_alternative<Declaration>(s.value), s, "Set declares");
  }
}

}  // namespace lane
