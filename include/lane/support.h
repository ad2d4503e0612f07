// Whether a checkpoint compiles, and everything that keeps it from it: what `lanec inspect --support` prints.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lane/gguf.h"
#include "lane/options.h"
#include "lane/spec.h"

namespace lane {

struct Support {
  struct Tensor {
    std::string name;  // as the file says
    std::string_view format;
    enum class Use { Read, LeftOut, Unread, Unknown } use = Use::Unknown;  // Unknown: so is the architecture
    bool computed = true;  // false: of a type that lanec does not compute with
    enum class Shape { Sound, Another, Unknown } shape = Shape::Sound;  // Unknown: a refused key would say it
    LeftOut::Part part = LeftOut::Part::Vision;                         // of what is left out
  };
  std::vector<Tensor> tensors;       // file order
  int64_t nextn_blocks = 0;          // blocks at the end that are left out: multi-token prediction
  std::vector<std::string> reasons;  // what compile() would throw, each with its type's name; none: it compiles
  bool whole = true;                 // false: the architecture is unknown, and with it what reads the tensors
};

/// Model, tensor types and vocabulary are looked at to the end. Where model and types are sound, the checkpoint is
/// compiled, for what only later passes refuse. Throws what read_checkpoint throws.
Support support(const std::filesystem::path& checkpoint, const Options& options);

/// A line a tensor, a line a reason, and the verdict.
std::string to_text(const Support& support);

/// What `lanec inspect` says below the tensors: how many nextn blocks there are, and a line for each tensor that a text
/// step does not need.
std::string left_out_text(const Checkpoint& checkpoint);

}  // namespace lane
