// The canonical text of a tree: LF, one statement a line, single spaces, shortest round-trip floats.
#include <cstdlib>
#include <string>

#include "lane/logos.h"
#include "lane/ops.h"

namespace lane {
namespace {

std::string subscript_text(const Subscript& s) {
  if (s.name.empty()) return std::to_string(s.offset);
  if (s.offset == 0) return s.name;
  return "(" + s.name + (s.offset < 0 ? " - " : " + ") + std::to_string(std::abs(s.offset)) + ")";
}

bool same(const Subscript& a, const Subscript& b) { return a.name == b.name && a.offset == b.offset; }

std::string operand_text(const Operand& o) {
  if (!o.indexed) return o.name;
  if (same(o.from, o.through)) return "item " + subscript_text(o.from) + " of " + o.name;
  return "items " + subscript_text(o.from) + " through " + subscript_text(o.through) + " of " + o.name;
}

std::string options_text(const std::vector<OptionText>& options) {
  std::string text;
  for (const OptionText& o : options) {
    text += text.empty() ? " with " : " and ";
    text += o.name + " " + (o.integer ? std::to_string(int64_t(o.value)) : float_text(o.value));
  }
  return text;
}

struct ValueText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const Declaration& d) const { return "a new " + d.kind + options_text(d.options); }
  std::string operator()(const PhraseValue& v) const {
    std::string text = "the " + v.phrase + " of ";
    for (size_t i = 0; i < v.operands.size(); ++i) text += (i ? " and " : "") + operand_text(v.operands[i]);
    return text + options_text(v.options);
  }
  std::string operator()(const ListValue& v) const {
    std::string text = "[";
    for (size_t i = 0; i < v.names.size(); ++i) text += (i ? ", " : "") + v.names[i];
    return text + "]";
  }
  std::string operator()(const Operand& o) const { return operand_text(o); }
};

}  // namespace

std::string to_text(const Statement& s) {
  const std::string target = operand_text(s.target);
  switch (s.kind) {
    case Statement::Kind::Let:
      return std::string("Let ") + (s.is_mutable ? "mutable " : "") + target + " be " +
             std::visit(ValueText{}, s.value) + ".";
    case Statement::Kind::Set:
      return "Set " + target + " to " + std::visit(ValueText{}, s.value) + ".";
    case Statement::Kind::Show:
      return "Show " + target + ".";
  }
  return {};
}

std::string to_text(const SyntaxTree& tree) {
  std::string text = "## Main\n";
  for (const Statement& s : tree.statements) text += to_text(s) + "\n";
  return text;
}

}  // namespace lane
