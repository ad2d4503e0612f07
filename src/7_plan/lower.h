// From the step's ops to launches: a kernel for each, its geometry and its arguments.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "7_plan/step.h"

namespace lane {

class Lowering {
 public:
  Lowering(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options, const Chip& chip);
  Schedule run();

  // What the functions that lower one kind of op build on.
  const Weights& weights() const { return weights_; }
  const Options& options() const { return options_; }
  const Chip& chip() const { return chip_; }
  const Step& step() const { return step_; }
  int64_t sequences() const { return schedule_.sequences; }

  Arg in(const Ref& ref) const { return arg(ref, Access::Read); }
  Arg out(const Ref& ref) const { return arg(ref, Access::Write); }
  Arg in_out(const Ref& ref) const { return arg(ref, Access::ReadWrite); }
  /// The operand, or a null pointer where the op has not so many.
  Arg in_or_null(const StepOp& op, size_t operand) const;
  Arg slots() const { return IoArg{Io::Slots, Access::Read}; }
  Arg state_stride() const { return int64_t(step_.state_stride); }
  /// Rows of one sequence in an operand that holds all sequences'.
  int64_t rows_per_sequence(const Ref& x) const { return x.shape.rows / sequences(); }

  /// The activations of `x`, rows of `columns` values, as a product of `format` takes them: floats, or integers that a
  /// launch before it makes, once for all products that read them.
  Arg activations(const StepOp& op, const Ref& x, int64_t columns, const Format& format);
  /// What the vectors of several tokens depend on besides their values: ops/quantize_vectors.cuh, ops/float_vectors.cuh
  /// and their like.
  struct VectorsOf {
    std::string_view kernel;
    std::vector<std::string> template_arguments;
    std::string file;  // of the layout; empty where they do not depend on it
    int tile;          // tokens go by so many
    int threads, shared_bytes;
    int64_t bytes;
    int parts = 1;  // blocks of a token's vector, where it has no norm
    bool operator==(const VectorsOf&) const = default;
  };
  /// The rows of `x`, normed as `op` says, made by a launch before it, once for all products that read them.
  Arg vectors(const StepOp& op, const Ref& x, const VectorsOf& of);
  /// The buffer of `chosen` by expert, which a launch before it makes once for all products that read it: note [expert
  /// groups], `order` then `expert` then `first`.
  int groups(const StepOp& op, const Ref& chosen, int64_t experts);
  /// "" or "_int8x2" or "_int8": what a product kernel's name ends with.
  std::string product_suffix(const Format& format) const;
  /// A buffer that no value of the graph names.
  int scratch(const std::string& name, int64_t bytes);
  static Arg whole(int buffer, Access access) { return BufferArg{buffer, 0, access}; }

  Launch& launch(const StepOp& op, std::string_view kernel, Dim3 grid, Dim3 block, std::vector<Arg> args);
  /// A thread for each of `count` elements, which the kernel takes as an int.
  Launch& launch_elements(const StepOp& op, std::string_view kernel, int64_t count, std::vector<Arg> args);
  /// Throws NoKernelError: `op` cannot be computed, and why.
  [[noreturn]] void refuse(const StepOp& op, const std::string& kind, const std::string& why) const;
  /// Kernels count in int: refuses more.
  int64_t counted(const StepOp& op, int64_t count) const;

 private:
  Arg arg(const Ref& ref, Access access) const;
  void add_buffers();
  void add_advance();

  Step step_;
  const Weights& weights_;
  const Options& options_;
  const Chip& chip_;
  Schedule schedule_;
  struct Quantized {
    Ref source;
    int64_t columns = 0;
    int buffer = 0;
  };
  std::vector<Quantized> quantized_;
  struct Vectors {
    Ref source, norm;
    double epsilon = 0;
    VectorsOf of;
    int buffer = 0;
  };
  std::vector<Vectors> vectors_;
  struct Groups {
    Ref chosen;
    int buffer = 0;
  };
  std::vector<Groups> groups_;
  std::vector<int> buffers_;  // of each array of the step; -1 for logits and next
};

/// Vectors for products of matrices as `layout` has them, which a block makes as one of ops/streamed_product.cuh does.
Lowering::VectorsOf row_vectors(std::string_view kernel, const RepackedFormat& layout, int columns, int words,
                                bool gated, int tile, int64_t bytes);

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline Dim3 dim(int64_t x, int64_t y = 1, int64_t z = 1) { return {uint32_t(x), uint32_t(y), uint32_t(z)}; }
constexpr int64_t kWarpThreads = 32;
constexpr int64_t kByScore = 2;  // a top choice without `by`: the scores as they are

/// Blocks of a product of `rows` rows, of which a launch has `others`.
int64_t product_blocks(int64_t rows, int64_t others, const Chip& chip);
/// How a cache's rows are kept: the kernels' name, and the values of a block.
struct CacheType {
  std::string name;
  int64_t elements;
};
CacheType cache_type(const Lowering& to, const Ref& state);
/// The kernels' name of what an op does to each value: "SiluGate".
std::string functor_of(OpKind kind);

// One kind of op each; op is of that kind.
void lower_row_lookup(Lowering& to, const StepOp& op);
void lower_matrix_product(Lowering& to, const StepOp& op);
void lower_head_product(Lowering& to, const StepOp& op);
void lower_streamed_product(Lowering& to, const StepOp& op);
void lower_streamed_products(Lowering& to, const StepOp& op);
void lower_streamed_gated_product(Lowering& to, const StepOp& op);
/// The greatest of each row's `parts` best, which a launch before it found.
void lower_greatest_of_parts(Lowering& to, const StepOp& op, int values, int indices, int64_t parts);
void lower_tiled_product(Lowering& to, const StepOp& op);
void lower_tiled_products(Lowering& to, const StepOp& op);
void lower_tiled_gated_product(Lowering& to, const StepOp& op);
void lower_float_product(Lowering& to, const StepOp& op);
void lower_float_products(Lowering& to, const StepOp& op);
void lower_float_gated_product(Lowering& to, const StepOp& op);
void lower_expert_product(Lowering& to, const StepOp& op);
void lower_norm(Lowering& to, const StepOp& op);
void lower_map(Lowering& to, const StepOp& op);
void lower_combine(Lowering& to, const StepOp& op);
void lower_gate(Lowering& to, const StepOp& op);
void lower_decay(Lowering& to, const StepOp& op);
void lower_head_slice(Lowering& to, const StepOp& op);
void lower_join(Lowering& to, const StepOp& op);
void lower_rows(Lowering& to, const StepOp& op);
void lower_rotation(Lowering& to, const StepOp& op);
void lower_position_scale(Lowering& to, const StepOp& op);
void lower_write(Lowering& to, const StepOp& op);
void lower_attention(Lowering& to, const StepOp& op);
void lower_short_convolution(Lowering& to, const StepOp& op);
void lower_shift(Lowering& to, const StepOp& op);
void lower_delta(Lowering& to, const StepOp& op);
void lower_greatest(Lowering& to, const StepOp& op);
void lower_top_choice(Lowering& to, const StepOp& op);
void lower_chosen_share(Lowering& to, const StepOp& op);
void lower_expert_bias(Lowering& to, const StepOp& op);
void lower_expert_sum(Lowering& to, const StepOp& op);
// Fused ones.
void lower_product(Lowering& to, const StepOp& op);
void lower_products(Lowering& to, const StepOp& op);
void lower_gated_product(Lowering& to, const StepOp& op);
void lower_attention_inputs(Lowering& to, const StepOp& op);
void lower_split_attention(Lowering& to, const StepOp& op);
void lower_chunk_attention(Lowering& to, const StepOp& op);
void lower_chosen_product(Lowering& to, const StepOp& op);
void lower_expert_gate(Lowering& to, const StepOp& op);
void lower_choice(Lowering& to, const StepOp& op);
void lower_routing(Lowering& to, const StepOp& op);
void lower_convolution(Lowering& to, const StepOp& op);
void lower_delta_chunk(Lowering& to, const StepOp& op);
void lower_chain(Lowering& to, const StepOp& op);

}  // namespace lane
