// Pass 6: where every constant of the forms lives. A matrix's rows are read in place from the checkpoint: the program
// uploads that byte range. What no tensor holds as it must be is computed once into the sidecar. All forms of a lane
// share one Weights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lane/formats.h"
#include "lane/gguf.h"
#include "lane/graph.h"
#include "lane/options.h"

namespace lane {

/// How the array lies on the device.
enum class DeviceLayout {
  AsStored,     // a matrix's blocks, byte for byte as in the checkpoint
  Repacked,     // a matrix's bits in another order, for kernels that stream them: made while loading
  Floats,       // a vector widened to float32 (from F32, F16 or BF16)
  RotaryTable,  // (cos, sin) float pairs, [ctx][turned / 2], computed while loading from frequencies in the sidecar
};

struct Placement {
  std::string name;                // the text's name ("attn_q_0"), or lanec's own for a derived array ("rotary_0")
  std::string tensor;              // the checkpoint's name of it; empty for a derived array
  Shape shape;                     // of the device array in elements
  const Format* format = nullptr;  // as stored in the checkpoint; F32 for sidecar arrays
  DeviceLayout layout = DeviceLayout::AsStored;
  bool in_sidecar = false;  // offset and bytes are of the sidecar's payload, else of the shard's file
  int shard = 0;
  uint64_t offset = 0, bytes = 0;
  uint64_t device_bytes = 0;  // what the device array takes, before alignment
  double magnitude = 1;       // RotaryTable: multiplies cos and sin
  bool is_matrix() const { return layout == DeviceLayout::AsStored || layout == DeviceLayout::Repacked; }
};

/// How a format lies on the device when it is repacked: a row of kernels/layout.
struct RepackedFormat {
  FormatId format;
  std::string_view name, file;  // "RepackedQ4_K", "layout/q4_k.cuh"
  int bytes_256;                // of 256 weights
  bool word_shares = false;     // L::kWordShares: a lane of a tensor core takes its codes as they lie
};
/// Null for a format that has no such layout.
const RepackedFormat* find_repacked(const Format& format);
/// int8 words of an activation that a matrix of this format is multiplied with; 0: it is float.
int activation_words(const Options& options, const Format& format);

/// A tensor whose values were computed into the sidecar: a program is of use for these values alone.
struct FoldedTensor {
  std::string name;  // the checkpoint's: letters, digits, '_' and '.'
  int shard = 0;
  uint64_t offset = 0, bytes = 0;
  uint64_t digest = 0;  // XXH3-64 of the bytes, as docs/sidecar.md has it
};

struct Weights {
  std::vector<Placement> placements;         // ordered by first use in the decode form
  std::vector<FoldedTensor> folded;          // each once
  std::vector<std::byte> payload;            // the sidecar's bytes, each array 16-aligned
  std::map<std::string, int> rotary_tables;  // what a rotation's table depends on, and its placement
  int find(std::string_view name) const;     // -1 where absent
  /// The placement holding the table of a Rotation op (base, turned, scaling, factors): equal rotations share one.
  int rotary(const StepGraph& graph, const Op& rotation) const;
};

/// The checkpoint's tensor that a constant of the text names: `X_N` is blk.N.X.weight (else blk.N.X), `X_bias_N` is
/// blk.N.X.bias; `X` is X.weight (else X), `X_bias` is X.bias. Null where there is none.
const TensorInfo* bind_constant(const Checkpoint& checkpoint, std::string_view name);

/// Throws FormatError for a type that lanec does not compute with.
void check_format(const TensorInfo& tensor);

/// Inverse frequencies of a Rotation op, one a pair, in double, YaRN or linear scaling and factors applied.
/// docs/logos.md has the formula.
std::vector<double> rotary_frequencies(const Op& rotation, const std::vector<double>& factors);

/// A tensor's values, row after row. Throws CheckpointError where one is not finite.
std::vector<double> finite_values(const Checkpoint& checkpoint, const TensorInfo& tensor);
/// The same of what a Rotation op divides its frequencies by. Throws CheckpointError also where one is 0 or less.
std::vector<double> rotary_factors(const Checkpoint& checkpoint, const TensorInfo& tensor);
/// Throws CheckpointError: weight `index` of the tensor is `found`.
[[noreturn]] void refuse_value(const Checkpoint& checkpoint, const TensorInfo& tensor, uint64_t index, double found,
                               std::string_view expected);

/// Throws UnboundError, ShapeError (the text's shape against the tensor's), FormatError (a type no kernel reads),
/// CheckpointError (values that are to be computed with and cannot).
Weights place_weights(const std::vector<const StepGraph*>& graphs, const Checkpoint& checkpoint,
                      const Options& options);
void verify(const Weights& weights, const Checkpoint& checkpoint);
std::string to_text(const Weights& weights);

}  // namespace lane
