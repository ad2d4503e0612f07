// Row-wise ops: norms, functions of values, slices and joins.
#include <algorithm>

#include "7_plan/lower.h"

namespace lane {
namespace {

constexpr int64_t kRowNormThreads = 256;  // as ops/row_norm.cuh says

/// Threads that norm a run: they set the order of its sum, so a row takes what fused kernels take, and a head a warp.
int64_t norm_threads(const StepOp& op) { return op.has(OptionKey::Width) ? kWarpThreads : kRowNormThreads; }

}  // namespace

std::string functor_of(OpKind kind) {
  switch (kind) {
    case OpKind::ScaledCopy:
      return "Scale";
    case OpKind::Silu:
      return "Silu";
    case OpKind::Gelu:
      return "Gelu";
    case OpKind::Sigmoid:
      return "Sigmoid";
    case OpKind::Softplus:
      return "Softplus";
    case OpKind::SquareRelu:
      return "SquareRelu";
    case OpKind::Softcap:
      return "Softcap";
    case OpKind::Clamp:
      return "Clamp";
    case OpKind::Sum:
      return "Add";
    case OpKind::Product:
      return "Multiply";
    case OpKind::SiluGate:
      return "SiluGate";
    case OpKind::GeluGate:
      return "GeluGate";
    case OpKind::SigmoidGate:
      return "SigmoidGate";
    case OpKind::ClampedGate:
      return "ClampedGate";
    default:
      return "";
  }
}

void lower_norm(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const int64_t width = op.integer(OptionKey::Width, x.shape.columns);
  const Dim3 grid = dim(to.counted(op, x.shape.elements()) / width), block = dim(norm_threads(op));
  const double epsilon = op.option(OptionKey::Epsilon);
  if (op.kind == OpKind::LengthNorm) {
    to.launch(op, "length_norm", grid, block, {to.out(op.result), to.in(x), width, epsilon});
    return;
  }
  const int64_t weight_columns = op.operands.size() > 1 ? op.operands[1].shape.elements() : width;
  if (op.operands.size() > 2 && op.operands[2].shape.elements() != weight_columns)
    to.refuse(op, "weight and bias", "they have not the same number of values");
  std::vector<Arg> args{to.out(op.result), to.in(x), to.in_or_null(op, 1), to.in_or_null(op, 2)};
  if (op.kind == OpKind::RmsNorm) args.push_back(to.in(op.parts.residual));
  args.insert(args.end(), {width, weight_columns, epsilon});
  to.launch(op, op.kind == OpKind::RmsNorm ? "rms_norm" : "layer_norm", grid, block, args);
}

void lower_map(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const double parameter = op.kind == OpKind::ScaledCopy ? op.option(OptionKey::Factor) : op.option(OptionKey::Limit);
  const int64_t count = x.shape.elements();
  to.launch_elements(op, "map", count, {to.out(op.result), to.in(x), count, parameter}).template_arguments = {
      functor_of(op.kind)};
}

void lower_combine(Lowering& to, const StepOp& op) {
  const Ref &x = op.operands[0], &y = op.operands[1];
  const int64_t columns = x.shape.columns, count = x.shape.elements();
  const int64_t y_row = y.shape.rows == 1 && x.shape.rows > 1 ? 0 : y.shape.columns;
  const int64_t y_column = y.shape.columns == 1 && columns > 1 ? 0 : 1;
  to.launch_elements(op, "combine", count, {to.out(op.result), to.in(x), to.in(y), count, columns, y_row, y_column})
      .template_arguments = {functor_of(op.kind)};
}

void lower_gate(Lowering& to, const StepOp& op) {
  const Ref& g = op.operands[0];
  const int64_t count = g.shape.elements();
  to.launch_elements(op, "gate", count,
                     {to.out(op.result), to.in(g), to.in(op.operands[1]), count, op.option(OptionKey::Limit),
                      op.option(OptionKey::Slope)})
      .template_arguments = {functor_of(op.kind)};
}

void lower_decay(Lowering& to, const StepOp& op) {
  const Ref& a = op.operands[0];
  const int64_t count = a.shape.elements();
  to.launch_elements(
      op, "decay", count,
      {to.out(op.result), to.in(a), to.in(op.operands[1]), to.in(op.operands[2]), count, a.shape.columns});
}

void lower_head_slice(Lowering& to, const StepOp& op) {
  const int64_t first = op.integer(OptionKey::From) - 1, kept = op.integer(OptionKey::Through) - first;
  const int64_t count = op.result.shape.elements();
  to.launch_elements(op, "head_slice", count,
                     {to.out(op.result), to.in(op.operands[0]), count, op.integer(OptionKey::Width), first, kept});
}

void lower_join(Lowering& to, const StepOp& op) {
  const Ref &x = op.operands[0], &y = op.operands[1];
  const int64_t heads = op.integer(OptionKey::Heads, 1);
  const int64_t x_width = x.shape.columns / heads, y_width = op.result.shape.columns / heads - x_width;
  const int64_t repeats = y.shape.columns == y_width * heads ? 0 : 1;
  const int64_t count = op.result.shape.elements();
  to.launch_elements(op, "head_join", count,
                     {to.out(op.result), to.in(x), to.in(y), count, x_width, y_width, heads, repeats});
}

void lower_rows(Lowering& to, const StepOp& op) {
  const int64_t count = op.result.shape.elements();
  to.launch_elements(op, "copy_rows", count, {to.out(op.result), to.in(op.operands[0]), count});
}

}  // namespace lane
