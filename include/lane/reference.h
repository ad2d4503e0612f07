// The reference interpreter: a StepGraph computed on the CPU. In double, with plain loops, it is the oracle of every
// kernel, fusion and form; in float, with rows of weights decoded on the fly, it is what `lanec run` uses on a machine
// without a GPU. Both run the same ops over all cores, and no sum depends on how many there are.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lane/gguf.h"
#include "lane/graph.h"
#include "lane/options.h"

namespace lane {

/// A constant as it lies in memory: experts x rows rows of blocks, each row `format->row_bytes(columns)` long.
struct ConstantData {
  const Format* format = nullptr;
  std::span<const std::byte> bytes;
};

/// The constants of a graph by the text's names: tensors of a mapped checkpoint, or floats given by hand.
class Constants {
 public:
  Constants() = default;
  /// Binds every constant of `graph` with bind_constant(); the checkpoint outlives this. A vector (one row) binds to
  /// any float tensor of as many elements. Throws UnboundError, ShapeError, FormatError.
  Constants(const StepGraph& graph, const Checkpoint& checkpoint);
  void set(const std::string& name, std::span<const float> values);  // copied, as F32
  void set(const std::string& name, const ConstantData& data);       // its bytes outlive this
  const ConstantData* find(std::string_view name) const;             // null where absent

 private:
  std::map<std::string, ConstantData, std::less<>> data_;
  std::vector<std::unique_ptr<std::vector<float>>> given_;
};

/// Reads every weight of a step whose constants are bound, as a program does while it loads. Throws CheckpointError for
/// one that is not finite, and for a rotary factor of 0 or less.
void check_weights(const StepGraph& graph, const Checkpoint& checkpoint);

using StepInputs = std::map<std::string, std::vector<int32_t>, std::less<>>;

/// T is double (the oracle) or float (the fast one).
template <class T>
class Interpreter {
 public:
  /// `kv`: what a cache write rounds to; absent: nothing is rounded. `threads` 0: one a core. What
  /// the constants point at outlives this. Throws UnboundError, ShapeError where a constant is missing or has another
  /// size.
  Interpreter(StepGraph graph, const Constants& constants, std::optional<KvType> kv = {}, int threads = 0);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  /// One step: every op in order. Throws UsageError for an input that is missing, of another length, or out of range.
  void run(const StepInputs& inputs);
  void reset();  // carried state to zero

  const StepGraph& graph() const;
  /// A computed, carried or Constant value by name, row after row. Throws UsageError where there is none of that name.
  std::span<const T> value(std::string_view name) const;
  std::span<const int32_t> integers(std::string_view name) const;  // an input, a `greatest` or a `top choice`
  std::span<T> state(std::string_view name);                       // to be read, or set before a step

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

extern template class Interpreter<double>;
extern template class Interpreter<float>;
using Reference = Interpreter<double>;
using FastReference = Interpreter<float>;

}  // namespace lane
