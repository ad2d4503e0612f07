// Launches of products of quantized weights as stored on integer tensor cores. Their activations are quantized by a
// launch before them, once for all products that read them.
#include "7_plan/int8_tiles.h"

#include "7_plan/activations.h"
#include "7_plan/fused_parts.h"
#include "ops/mma_int8_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

/// Formats, then the gate's function if there is one, then planes of the activations and tokens of a block.
void specialize(const Lowering& to, Launch& launch, std::initializer_list<const Format*> formats,
                const std::string& function, int64_t tokens) {
  for (const Format* format : formats) {
    launch.template_arguments.emplace_back(format->name);
    launch.includes.emplace_back(format->kernel);
  }
  if (!function.empty()) launch.template_arguments.push_back(function);
  const int of_block = kernels::mma_int8_tokens(int(tokens));
  const bool two_words = to.options().activations == Activations::Int8x2;
  launch.template_arguments.insert(launch.template_arguments.end(), {two_words ? "2" : "1", std::to_string(of_block)});
  launch.shared_bytes = uint32_t(kernels::mma_int8_shared_bytes(of_block));
}

int64_t row_blocks(int64_t rows) { return ceil_div(rows, kernels::kInt8Rows); }
Dim3 grid_of(int64_t rows, int64_t tokens) {
  return dim(ceil_div(tokens, kernels::mma_int8_tokens(int(tokens))), row_blocks(rows));
}

/// What an expert gets on average.
int64_t choices_of_expert(const ChoiceGroups& groups) { return ceil_div(groups.choices, groups.most); }

}  // namespace

bool on_int8_tiles(const Weights& weights, const Options& options, const Chip& chip, const StepOp& product,
                   int64_t tokens) {
  constexpr int64_t kMostBlocks = 65535;  // of a grid's second dimension
  const Placement& matrix = weights.placements[size_t(product.operands[0].index)];
  return chip.int8_mma && tokens > kMostPreparedTokens && matrix.layout == DeviceLayout::AsStored &&
         activation_kind(options, *matrix.format) != ActivationKind::Floats &&
         row_blocks(matrix.shape.rows) <= kMostBlocks;
}

bool on_int8_tiles(const Lowering& to, const StepOp& product, const ChoiceGroups& groups) {
  return choices_of_expert(groups) > kernels::kInt8MostTokens && on_int8_tiles(to, product, choices_of_expert(groups));
}

void lower_int8_product(Lowering& to, const StepOp& op) {
  const Matrix m = matrix_of(to, op);
  const Ref& x = op.operands[1];
  const Arg activations = to.activations(op, x, x.shape.columns, *m.format);
  Launch& launch =
      to.launch(op, "mma_int8_product", grid_of(m.rows, x.shape.rows), dim(kernels::kInt8Threads),
                {m.out, m.weights, m.bias, m.residual, activations, m.rows, x.shape.columns, x.shape.rows});
  specialize(to, launch, {m.format}, "", x.shape.rows);
}

void lower_int8_head_product(Lowering& to, const StepOp& op) {
  const Matrix m = matrix_of(to, op);
  const Ref &w = op.operands[0], &x = op.operands[1];
  const Arg activations = to.activations(op, x, w.shape.columns, *m.format);
  const Dim3 grid = grid_of(m.rows, x.shape.rows);
  Launch& launch =
      to.launch(op, "mma_int8_head_product", dim(int64_t(grid.x) * w.shape.experts, grid.y), dim(kernels::kInt8Threads),
                {m.out, m.weights, activations, w.shape.experts, m.rows, w.shape.columns, x.shape.rows});
  specialize(to, launch, {m.format}, "", x.shape.rows);
}

void lower_int8_gated_product(Lowering& to, const StepOp& op) {
  const Matrix gate = matrix_of(to, op.members[0]), up = matrix_of(to, op.members[1]);
  const Ref& x = op.operands[0];
  const Arg activations = to.activations(op, x, x.shape.columns, *gate.format);
  Launch& launch = to.launch(op, "mma_int8_gated_product", grid_of(gate.rows, x.shape.rows), dim(kernels::kInt8Threads),
                             {to.out(op.result), gate.weights, up.weights, activations, op.option(OptionKey::Limit),
                              op.option(OptionKey::Slope), gate.rows, x.shape.columns, x.shape.rows});
  specialize(to, launch, {gate.format, up.format}, functor_of(op.kind), x.shape.rows);
}

void lower_grouped_int8_product(Lowering& to, const StepOp& op, const ChoiceGroups& groups) {
  const Matrix m = matrix_of(to, op);
  const Ref& x = op.operands[1];
  const int64_t columns = op.operands[0].shape.columns;
  const Arg activations = to.activations(op, x, columns, *m.format);
  Launch& launch =
      to.launch(op, "grouped_mma_int8_product", dim(groups.most, row_blocks(m.rows)), dim(kernels::kInt8Threads),
                {m.out, m.weights, m.bias, activations, groups.order, groups.expert, groups.first, groups.choices,
                 m.rows, columns, x.shape.elements() / columns});
  specialize(to, launch, {m.format}, "", choices_of_expert(groups));
}

void lower_grouped_int8_gate(Lowering& to, const StepOp& op, const ChoiceGroups& groups) {
  const Matrix gate = matrix_of(to, op.members[0]), up = matrix_of(to, op.members[1]);
  const Ref& x = op.operands[0];
  const int64_t columns = op.members[0].operands[0].shape.columns;
  const Arg activations = to.activations(op, x, columns, *gate.format);
  Launch& launch = to.launch(
      op, "grouped_mma_int8_gated_product", dim(groups.most, row_blocks(gate.rows)), dim(kernels::kInt8Threads),
      {to.out(op.result), gate.weights, up.weights, gate.bias, up.bias, activations, groups.order, groups.expert,
       groups.first, op.option(OptionKey::Limit), op.option(OptionKey::Slope), groups.choices, gate.rows, columns,
       x.shape.elements() / columns});
  specialize(to, launch, {gate.format, up.format}, functor_of(op.kind), choices_of_expert(groups));
}

}  // namespace lane
