// Pass 7: a kernel for each op, the fusion rules, the arrays a step computes, launch geometry. A Schedule is everything
// a step does, in order; nothing after it chooses.
//
// note [one launch over sequences]
// All forms run the same kernels over T = sequences x rows tokens. Token t belongs to sequence s = t /
// rows_per_sequence and stands at pos[s] + t % rows_per_sequence. Decode is (1, 1), a chunk (1, R), a batch (S, 1). A
// batch's text says a per-sequence op S times; the planner folds such a family into one launch over arrays whose rows
// lie one below the other. Carried state of sequence slot b lies at state + slots[b] * state_stride: so a prefill form
// fills any slot, and no address depends on the sequence.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lane/chip.h"
#include "lane/graph.h"
#include "lane/options.h"
#include "lane/program.h"
#include "lane/weights.h"

namespace lane {

/// An array that one launch writes and later ones of the same step read: placed in the arena by its lifetime.
struct Buffer {
  std::string name;  // of the value it holds, or lanec's own ("attn_out_0.int8")
  uint64_t bytes = 0;
};

/// Carried state as the device holds it: the same for all forms; offsets are within one sequence slot's block.
struct State {
  std::string name;     // "keys_0"
  uint64_t offset = 0;  // bytes, 256-aligned
  uint64_t bytes = 0;
  Shape shape;
  /// "f16", "f32", "q8_0": attention caches follow Options::kv; "i32": counters; everything else is f32.
  std::string type;
};

/// Integers that change from step to step, read from device memory: the program writes them once, the step advances
/// them itself.
enum class Io {
  Tokens,     // [T]
  Positions,  // [S]
  Slots,      // [S]
  Next,       // [S]
  Turns,      // [S]: steps of as many sequences that have ended
  Shown       // in host memory, what they chose: kernels/ops/shown.cuh
};
/// What leaves the step: float32 logits, [rows][vocabulary].
struct LogitsArg {
  uint64_t byte_offset = 0;
};

enum class Access { Read, Write, ReadWrite };
struct BufferArg {
  int buffer = 0;
  uint64_t byte_offset = 0;
  Access access = Access::Read;
};
struct WeightArg {
  int placement = 0;
};
struct StateArg {
  int state = 0;
  Access access = Access::Read;
};
struct IoArg {
  Io io = Io::Tokens;
  Access access = Access::Read;
};
struct NullArg {};  // an optional pointer left out
using Arg = std::variant<BufferArg, WeightArg, StateArg, IoArg, LogitsArg, NullArg, int64_t, double>;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

/// A kernel that lanec can launch: a row of the kernel table.
struct Kernel {
  std::string_view name;  // "rms_norm"
  std::string_view file;  // "ops/norm.cuh"
  /// The C++ types of its parameters, in order: "float* out, const float* x, …": printed in docs/kernels.md and checked
  /// against Args.
  std::string_view parameters;
  /// It reads a few rows of its matrices, not all.
  bool gathers = false;
};
std::span<const Kernel> kernels();
const Kernel& kernel(std::string_view name);

struct Launch {
  const Kernel* kernel = nullptr;
  std::vector<std::string> template_arguments;  // "Q4_K", "F16Cache", "8"
  std::vector<std::string> includes;            // kernel files besides the kernel's own: "quant/q4_k.cuh"
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  std::vector<Arg> args;  // in the kernel's order
  std::vector<int> ops;   // indices of the graph's ops it computes: for listings
};

/// A fusion rule in one schedule: how often it applied, how many launches are saved so, and how many bytes of arrays
/// that launches do not write and read.
struct Fired {
  std::string rule;
  int times = 0;
  int64_t launches = 0, bytes = 0;
};

struct Schedule {
  FormKind kind = FormKind::Decode;
  int64_t sequences = 1, rows_per_sequence = 1;
  std::vector<Buffer> buffers;
  std::vector<State> states;
  uint64_t state_stride = 0;  // bytes of one sequence slot's block
  std::vector<Launch> launches;
  std::vector<int> layer_launches;  // how many of the launches compute a layer's values
  int64_t logit_rows = 1, vocabulary = 0;
  std::vector<Fired> fired;
};

/// Every fusion rule with its pattern, its kernel and what it saves, and how often it fired in each of the schedules.
std::string rules_text(const std::vector<const Schedule*>& schedules);

/// Throws NoKernelError; UsageError where `options.hold` names no rule.
Schedule plan(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options, const Chip& chip);
void verify(const Schedule& schedule,
            const Weights& weights);  // every array read was written before, sizes fit, args match parameters
std::string to_text(const Schedule& schedule, const Weights& weights);

}  // namespace lane
