// Pass 3: the model's one program in LOGOS, and the cut each form compiles.
//
// note [one program, cut by partial evaluation]
// The program is written once, over S sequences of R rows each. Most statements speak of all S x R rows together; the
// others (rotation, attention, recurrences, writes to carried state) speak of one sequence and are marked so. A cut
// fixes S and R: decode (1, 1), prefill (1, R), batch (S, 1). With one sequence the marked statements are said once,
// under their own names. With several they are said for each, `name` becoming `name_s<b>`; a value of all rows is taken
// apart
// (`Let q_0_s1 be item 2 of q_0.`) where a marked statement first reads it, and values of sequences are put together
// (`Let a_0 be [a_0_s0, a_0_s1].`) where a statement about all rows first reads them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lane/ops.h"
#include "lane/spec.h"

namespace lane {

enum class FormKind { Decode, Prefill, Batch };
std::string_view to_text(FormKind kind);  // "decode", "prefill", "batch"

/// What a form is: printed in the program it becomes.
struct Identity {
  FormKind kind = FormKind::Decode;
  int64_t rows = 1;  // tokens of a chunk; sequences of a batch
  int64_t ctx = 0;
  std::string cut_digest = {};      // XXH3-128 of the cut's text, 32 hex digits
  std::string program_digest = {};  // XXH3-128 of the uncut program's text: the same in every form
};

struct Cut {
  Identity identity;
  std::string text;         // canonical LOGOS
  std::string tag() const;  // "1", "4", "b4"
  int64_t sequences() const { return identity.kind == FormKind::Batch ? identity.rows : 1; }
  int64_t rows_per_sequence() const { return identity.kind == FormKind::Prefill ? identity.rows : 1; }
};

/// A statement of the uncut program.
struct ProgramStatement {
  enum class Kind {
    Constant,  // Let name be a new Constant or Quantized
    Carried,   // Let mutable name be a new Carried: one a sequence
    Lookup,    // Let name be a row of operands[0] for each token
    Op,        // Let name be the op of operands
    Last,      // Let name be each sequence's last row of operands[0]
    Write,     // Set the rows of name at the sequence's positions to operands[0]
    Update,    // Set name to the op of operands
    Show,
  };
  Kind kind = Kind::Op;
  bool each = false;  // said for each sequence by itself
  std::string name;
  OpKind op = OpKind::Sum;                 // of Op and Update
  std::vector<std::string> operands = {};  // names; "pos" is the sequence's position
  std::string tail = {};  // what a declaration or an op's options say: "Carried with rows 32", " with limit 30.0"
};

struct ModelProgram {
  std::string text;  // the uncut program: statements over S sequences of R rows
  ModelSpec spec;
  std::vector<ProgramStatement> statements = {};
};

/// The longest chunk that a prefill form computes.
constexpr int64_t kMaxChunk = 512;
/// The longest of a context: a power of two.
int64_t longest_chunk(int64_t ctx);
/// The most sequences of a batch form: a grid's second dimension counts them.
constexpr int64_t kMaxBatch = 65535;

/// The text's name of a checkpoint's tensor: "blk.N.X.weight" is "X_N", "blk.N.X.bias" is "X_bias_N", "blk.N.X" is
/// "X_N", "X.weight" is "X", "X.bias" is "X_bias"; dots within X become underscores.
std::string constant_name(std::string_view tensor);

ModelProgram author(const ModelSpec& spec);
/// Decode takes rows 1. Throws ChunkError or BatchError where the form cannot be.
Cut cut(const ModelProgram& program, FormKind kind, int64_t rows);
/// Names bound once and before they are read. Throws InternalError.
void verify(const ModelProgram& program);
void verify(const Cut& cut, const ModelProgram& program);  // digests, inputs and outputs of its kind
std::string to_text(const ModelProgram& program);
std::string to_text(const Cut& cut);

}  // namespace lane
