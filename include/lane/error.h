// Refusals. Every failure of lanec is one of these types, named as docs/errors.md lists them; a message says where,
// what was found and what is accepted. Only tools/lanec.cpp catches.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lane {

/// Process exit codes: what a script may rely on.
enum class ExitCode : int {
  Usage = 2,         // a command line, or a LOGOS text a person wrote
  Checkpoint = 3,    // a malformed, truncated or inconsistent checkpoint
  NotSupported = 4,  // a sound checkpoint that lanec does not compile (yet)
  Environment = 5,   // files, memory, tools
  Internal = 70,     // a fault of ours
};

/// Base of all refusals. what() is "<Name>: <message>", one line; bytes that came from a file are escaped (see
/// `printable`).
class Error : public std::runtime_error {
 public:
  Error(const char* name, ExitCode code, const std::string& message)
      : std::runtime_error(std::string(name) + ": " + message), name_(name), code_(code) {}
  const char* name() const { return name_; }
  ExitCode exit_code() const { return code_; }

 private:
  const char* name_;
  ExitCode code_;
};

struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error("Usage", ExitCode::Usage, message) {}
};

/// A malformed checkpoint: which file, the byte where it was noticed, what stands there and what would be accepted.
struct CheckpointError : Error {
  CheckpointError(std::string file_, uint64_t offset_, std::string found_, std::string expected_)
      : Error("Checkpoint", ExitCode::Checkpoint,
              file_ + ": at byte " + std::to_string(offset_) + ": found " + found_ + "; expected " + expected_),
        file(std::move(file_)),
        offset(offset_),
        found(std::move(found_)),
        expected(std::move(expected_)) {}
  std::string file;
  uint64_t offset;
  std::string found, expected;
};

/// Something sound that lanec does not know: an architecture, a mixer, a key that would change the mathematics.
struct NotYetError : Error {
  explicit NotYetError(const std::string& message) : Error("NotYet", ExitCode::NotSupported, message) {}
};

/// A tensor type that lanec does not compute with.
struct FormatError : Error {
  FormatError(std::string tensor_, std::string type_, std::string why_)
      : Error("Format", ExitCode::NotSupported, "tensor '" + tensor_ + "' is " + type_ + ": " + why_),
        tensor(std::move(tensor_)),
        type(std::move(type_)),
        why(std::move(why_)) {}
  std::string tensor, type, why;
};

/// No kernel computes this op with these kinds of arrays on this chip.
struct NoKernelError : Error {
  NoKernelError(std::string op_, std::string kind_, std::string out_, std::string why_)
      : Error("NoKernel", ExitCode::NotSupported, op_ + " (" + kind_ + ") into '" + out_ + "': " + why_),
        op(std::move(op_)),
        kind(std::move(kind_)),
        out(std::move(out_)),
        why(std::move(why_)) {}
  std::string op, kind, out, why;
};

/// LOGOS text that does not parse. `line` and `column` are 1-based. Exit 2 for a text a person wrote, 70 for our own.
struct ParseError : Error {
  ParseError(int line_, int column_, const std::string& message)
      : Error("Parse", ExitCode::Usage,
              "line " + std::to_string(line_) + ", column " + std::to_string(column_) + ": " + message),
        line(line_),
        column(column_) {}
  int line, column;
};

/// LOGOS text that parses and is no step: an unknown phrase or option, a name bound twice, an output never bound.
struct GraphError : Error {
  GraphError(int line_, const std::string& message)
      : Error("Graph", ExitCode::Usage, "line " + std::to_string(line_) + ": " + message), line(line_) {}
  int line;
};

/// A constant of the text that no tensor of the checkpoint and no derivation gives.
struct UnboundError : Error {
  explicit UnboundError(std::string var_, const std::string& why)
      : Error("Unbound", ExitCode::Usage, "'" + var_ + "': " + why), var(std::move(var_)) {}
  std::string var;
};

/// Two shapes that should agree. In a checkpoint (exit 3) or in a text a person wrote (exit 2).
struct ShapeError : Error {
  ShapeError(std::string var_, std::string declared_, std::string bound_, ExitCode code = ExitCode::Usage)
      : Error("Shape", code, "'" + var_ + "': declared " + declared_ + ", bound " + bound_),
        var(std::move(var_)),
        declared(std::move(declared_)),
        bound(std::move(bound_)) {}
  std::string var, declared, bound;
};

struct ChunkError : Error {
  ChunkError(int64_t rows_, int64_t ctx_, int64_t longest)
      : Error("Chunk", ExitCode::Usage,
              "a prefill chunk of " + std::to_string(rows_) + " rows with context " + std::to_string(ctx_) +
                  "; accepted are powers of two up to " + std::to_string(longest)),
        rows(rows_),
        ctx(ctx_) {}
  int64_t rows, ctx;
};

struct BatchError : Error {
  BatchError(int64_t batch_, int64_t most)
      : Error("Batch", ExitCode::Usage,
              "a batch of " + std::to_string(batch_) + "; accepted are 2 to " + std::to_string(most) + " sequences"),
        batch(batch_) {}
  int64_t batch;
};

struct IoError : Error {
  explicit IoError(const std::string& message) : Error("Io", ExitCode::Environment, message) {}
};

/// Memory that is needed whatever is moved off the device, against what there is. Both in bytes.
struct MemoryError : Error {
  MemoryError(uint64_t needed_, uint64_t budget_, const std::string& items = "")
      : Error("Memory", ExitCode::Environment,
              "needs " + std::to_string(needed_) + " bytes, has " + std::to_string(budget_) +
                  (items.empty() ? "" : ": " + items)),
        needed(needed_),
        budget(budget_) {}
  uint64_t needed, budget;
};

/// A fault of ours: a damaged product, an authored text that does not lift.
struct InternalError : Error {
  explicit InternalError(const std::string& message) : Error("Internal", ExitCode::Internal, message) {}
};

/// `bytes` as something safe to print on a terminal or into a message: control characters, invalid UTF-8, bidirectional
/// controls, quotes and backslashes are escaped as \xNN; cut to `limit` bytes with "…" after it.
std::string printable(std::string_view bytes, size_t limit = 80);

}  // namespace lane
