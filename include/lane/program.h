// Pass 3: the model's one program in LOGOS, and the cut each form compiles.
#pragma once
#include <cstdint>
#include <string>

#include "lane/spec.h"

namespace lane {

enum class FormKind { Decode, Prefill, Batch };
std::string_view to_text(FormKind kind);  // "decode", "prefill", "batch"

/// What a form is: printed in the program it becomes.
struct Identity {
  FormKind kind = FormKind::Decode;
  int64_t rows = 1;  // tokens of a chunk; sequences of a batch
  int64_t ctx = 0;
  std::string cut_digest;      // XXH3-128 of the cut's text, 32 hex digits
  std::string program_digest;  // XXH3-128 of the uncut program's text: the same in every form
};

struct Cut {
  Identity identity;
  std::string text;         // canonical LOGOS
  std::string tag() const;  // "1", "4", "b4"
  int64_t sequences() const { return identity.kind == FormKind::Batch ? identity.rows : 1; }
  int64_t rows_per_sequence() const { return identity.kind == FormKind::Prefill ? identity.rows : 1; }
};

struct ModelProgram {
  std::string text;  // the uncut program: statements over S sequences and R rows
  ModelSpec spec;
};

ModelProgram author(const ModelSpec& spec);
/// Decode takes rows 1. Throws ChunkError or BatchError where the form cannot be.
Cut cut(const ModelProgram& program, FormKind kind, int64_t rows);
void verify(const Cut& cut, const ModelProgram& program);  // digests, inputs and outputs of its kind
std::string to_text(const Cut& cut);

}  // namespace lane
