// The uncut program as text: a statement a line, in LOGOS where a cut says it in LOGOS, S and R standing for the
// numbers that a cut fixes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "author.h"

namespace lane {
namespace {

using Kind = ProgramStatement::Kind;

std::string op_text(const ProgramStatement& statement) {
  return fmt::format("the {} of {}{}", op_name(statement.op), fmt::join(statement.operands, " and "), statement.tail);
}

std::string said(const ProgramStatement& s) {
  switch (s.kind) {
    case Kind::Constant:
      return fmt::format("Let {} be a new {}.", s.name, s.tail);
    case Kind::Carried:
      return fmt::format("Let mutable {} be a new {}.", s.name, s.tail);
    case Kind::Lookup:
      return fmt::format("Let {} be item (toks + 1) of {}.", s.name, s.operands[0]);
    case Kind::Op:
      return fmt::format("Let {} be {}.", s.name, op_text(s));
    case Kind::Last:
      return fmt::format("Let {} be item R of {}.", s.name, s.operands[0]);
    case Kind::Write:
      return fmt::format("Set items (pos + 1) through (pos + R) of {} to {}.", s.name, s.operands[0]);
    case Kind::Update:
      return fmt::format("Set {} to {}.", s.name, op_text(s));
    case Kind::Show:
      return fmt::format("Show {}.", s.name);
  }
  return "";
}

}  // namespace

std::string program_text(const ModelSpec& spec, const std::vector<ProgramStatement>& statements) {
  std::string text = fmt::format("## Note\nModel {} with context {}, over S sequences of R rows.\n\n## Main\n",
                                 spec.architecture->name, spec.ctx);
  for (const ProgramStatement& s : statements) {
    const bool each = s.each || s.kind == Kind::Last;
    text += (each ? "Each sequence: " : "") + said(s) + "\n";
  }
  return text;
}

std::string to_text(const ModelProgram& program) { return program.text; }

}  // namespace lane
