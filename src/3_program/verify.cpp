#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "author.h"
#include "lane/error.h"

namespace lane {
namespace {

using Kind = ProgramStatement::Kind;

[[noreturn]] void fail(const std::string& what) { throw InternalError("program: " + what); }

bool binds(Kind kind) { return kind != Kind::Write && kind != Kind::Update && kind != Kind::Show; }

}  // namespace

void verify(const ModelProgram& program) {
  std::set<std::string> bound{"pos"}, carried;
  for (const ProgramStatement& s : program.statements) {
    for (const std::string& name : s.operands)
      if (!bound.contains(name)) fail(fmt::format("'{}' is read before it is bound", name));
    if (binds(s.kind) && !bound.insert(s.name).second) fail(fmt::format("'{}' is bound twice", s.name));
    if (s.kind == Kind::Carried) carried.insert(s.name);
    if ((s.kind == Kind::Write || s.kind == Kind::Update) && !carried.contains(s.name))
      fail(fmt::format("'{}' is set and not carried", s.name));
    if (s.kind == Kind::Show && !bound.contains(s.name)) fail(fmt::format("'{}' is shown and never bound", s.name));
  }
  if (program.text != program_text(program.spec, program.statements)) fail("the text is not that of the statements");
}

void verify(const Cut& cut, const ModelProgram& program) {
  const Cut again = lane::cut(program, cut.identity.kind, cut.identity.rows);
  const std::string where = fmt::format("cut {}: ", cut.tag());
  if (cut.identity.ctx != program.spec.ctx) fail(where + "another context than the program's");
  if (cut.text != again.text) fail(where + "the text is not the program's cut");
  if (cut.identity.cut_digest != again.identity.cut_digest) fail(where + "the digest is not the text's");
  if (cut.identity.program_digest != again.identity.program_digest) fail(where + "the digest is not the program's");
}

}  // namespace lane
