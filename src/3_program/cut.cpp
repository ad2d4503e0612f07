// note [one program, cut by partial evaluation], include/lane/program.h
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <bit>
#include <map>
#include <set>

#include "lane/error.h"
#include "lane/program.h"

namespace lane {
namespace {

using Kind = ProgramStatement::Kind;

std::string digest(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// Says the statements of a program for S sequences of R rows.
class Cutter {
 public:
  Cutter(FormKind kind, int64_t sequences, int64_t rows) : kind_(kind), sequences_(sequences), rows_(rows) {}

  std::string say(const ModelProgram& program);

 private:
  enum class Extent { Shared /* constants */, All /* a row for each token */, Each /* a value for each sequence */ };
  struct Name {
    Extent extent = Extent::Shared;
    bool in_both = false;  // taken apart, or put together, already
  };

  void say(const ProgramStatement& s);
  void say_inputs();
  void say_op(const ProgramStatement& s, const std::string& verb, const std::string& to);
  void say_last(const ProgramStatement& s);

  // Names as this cut writes them.
  std::string of_sequence(const std::string& name, int64_t b) const;
  std::string position(int64_t b) const;
  const std::string& plain(const std::string& name) const;
  void take_apart(const std::string& name);
  void put_together(const std::string& name);
  std::string operand(const std::string& name, int64_t b);
  std::string operand(const std::string& name);
  std::string section(Kind kind) const;
  void line(const std::string& text) { text_ += text + "\n"; }

  FormKind kind_;
  int64_t sequences_, rows_;
  std::map<std::string, Name> names_;
  std::map<std::string, std::string> aliases_;
  std::string text_, section_;
};

const std::string& Cutter::plain(const std::string& name) const {
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? name : alias->second;
}

std::string Cutter::of_sequence(const std::string& name, int64_t b) const {
  return sequences_ == 1 ? name : fmt::format("{}_s{}", name, b);
}

std::string Cutter::position(int64_t b) const { return kind_ == FormKind::Decode ? "pos" : fmt::format("pos_s{}", b); }

void Cutter::take_apart(const std::string& name) {
  Name& known = names_.at(name);
  if (sequences_ == 1 || known.extent != Extent::All || known.in_both) return;
  known.in_both = true;
  for (int64_t b = 0; b < sequences_; ++b)
    line(fmt::format("Let {} be item {} of {}.", of_sequence(name, b), b + 1, name));
}

void Cutter::put_together(const std::string& name) {
  Name& known = names_.at(name);
  if (sequences_ == 1 || known.extent != Extent::Each || known.in_both) return;
  known.in_both = true;
  std::vector<std::string> parts;
  for (int64_t b = 0; b < sequences_; ++b) parts.push_back(of_sequence(name, b));
  line(fmt::format("Let {} be [{}].", name, fmt::join(parts, ", ")));
}

std::string Cutter::operand(const std::string& name, int64_t b) {
  if (name == "pos") return position(b);
  const std::string& known = plain(name);
  return names_.at(known).extent == Extent::Shared ? known : of_sequence(known, b);
}

void Cutter::say_inputs() {
  line("# inputs");
  if (kind_ == FormKind::Decode) {
    line("Let tok be a new Input.");
  } else {
    line(fmt::format("Let toks be a new Input with columns {}.", sequences_ * rows_));
  }
  for (int64_t b = 0; b < sequences_; ++b) line(fmt::format("Let {} be a new Input.", position(b)));
}

// `verb` "Let" or "Set", `to` "be" or "to".
void Cutter::say_op(const ProgramStatement& s, const std::string& verb, const std::string& to) {
  for (const std::string& name : s.operands)
    if (name != "pos") s.each ? take_apart(plain(name)) : put_together(plain(name));
  for (int64_t b = 0; b < (s.each ? sequences_ : 1); ++b) {
    std::vector<std::string> operands;
    for (const std::string& name : s.operands) operands.push_back(s.each ? operand(name, b) : plain(name));
    line(fmt::format("{} {} {} the {} of {}{}.", verb, s.each ? of_sequence(s.name, b) : s.name, to, op_name(s.op),
                     fmt::join(operands, " and "), s.tail));
  }
}

// With a row a sequence, its last row is its row.
void Cutter::say_last(const ProgramStatement& s) {
  if (rows_ == 1) {
    aliases_[s.name] = plain(s.operands[0]);
  } else {
    line(fmt::format("Let {} be item {} of {}.", s.name, rows_, plain(s.operands[0])));
  }
}

void Cutter::say(const ProgramStatement& s) {
  if (s.kind == Kind::Op || s.kind == Kind::Lookup || s.kind == Kind::Last)
    names_[s.name].extent = s.each ? Extent::Each : Extent::All;
  switch (s.kind) {
    case Kind::Constant:
      names_[s.name].extent = Extent::Shared;
      return line(fmt::format("Let {} be a new {}.", s.name, s.tail));
    case Kind::Carried:
      names_[s.name].extent = Extent::Each;
      for (int64_t b = 0; b < sequences_; ++b)
        line(fmt::format("Let mutable {} be a new {}.", of_sequence(s.name, b), s.tail));
      return;
    case Kind::Lookup:
      return line(fmt::format("Let {} be item ({} + 1) of {}.", s.name, kind_ == FormKind::Decode ? "tok" : "toks",
                              s.operands[0]));
    case Kind::Op:
      return say_op(s, "Let", "be");
    case Kind::Last:
      return say_last(s);
    case Kind::Write:
      take_apart(plain(s.operands[0]));
      for (int64_t b = 0; b < sequences_; ++b) {
        const std::string place = rows_ == 1 ? fmt::format("item ({} + 1)", position(b))
                                             : fmt::format("items ({0} + 1) through ({0} + {1})", position(b), rows_);
        line(fmt::format("Set {} of {} to {}.", place, of_sequence(s.name, b), operand(s.operands[0], b)));
      }
      return;
    case Kind::Update:
      return say_op(s, "Set", "to");
    case Kind::Show:
      take_apart(plain(s.name));
      for (int64_t b = 0; b < sequences_; ++b) line(fmt::format("Show {}.", of_sequence(plain(s.name), b)));
      return;
  }
}

std::string Cutter::section(Kind kind) const {
  if (kind == Kind::Constant) return "# constants";
  return kind == Kind::Carried ? "# carried" : "# step";
}

std::string Cutter::say(const ModelProgram& program) {
  const std::string rows = kind_ == FormKind::Decode ? "" : fmt::format("rows {} and ", sequences_ * rows_);
  text_ = fmt::format("## Note\nModel {}. Cut {} with {}context {}.\n\n## Main\n", program.spec.architecture->name,
                      to_text(kind_), rows, program.spec.ctx);
  for (const ProgramStatement& s : program.statements) {
    if (section(s.kind) != section_) {
      section_ = section(s.kind);
      if (section_ == "# step") say_inputs();
      line(section_);
    }
    say(s);
  }
  return std::move(text_);
}

void refuse_bad_rows(FormKind kind, int64_t rows, int64_t ctx) {
  if (kind == FormKind::Decode && rows != 1) throw InternalError(fmt::format("a decode step of {} rows", rows));
  if (kind == FormKind::Batch && (rows < 2 || rows > kMaxBatch)) throw BatchError(rows, kMaxBatch);
  const bool chunk = rows >= 2 && rows <= longest_chunk(ctx) && std::has_single_bit(uint64_t(rows));
  if (kind == FormKind::Prefill && !chunk) throw ChunkError(rows, ctx, longest_chunk(ctx));
}

}  // namespace

std::string_view to_text(FormKind kind) {
  switch (kind) {
    case FormKind::Decode:
      return "decode";
    case FormKind::Prefill:
      return "prefill";
    case FormKind::Batch:
      return "batch";
  }
  return "";
}

int64_t longest_chunk(int64_t ctx) { return int64_t(std::bit_floor(uint64_t(std::min(kMaxChunk, ctx)))); }

std::string Cut::tag() const { return fmt::format("{}{}", identity.kind == FormKind::Batch ? "b" : "", identity.rows); }

Cut cut(const ModelProgram& program, FormKind kind, int64_t rows) {
  refuse_bad_rows(kind, rows, program.spec.ctx);
  Cut result{.identity = {.kind = kind, .rows = rows, .ctx = program.spec.ctx}, .text = {}};
  result.text = Cutter(kind, result.sequences(), result.rows_per_sequence()).say(program);
  result.identity.cut_digest = digest(result.text);
  result.identity.program_digest = digest(program.text);
  return result;
}

std::string to_text(const Cut& cut) { return cut.text; }

}  // namespace lane
