// Launches of fused products of chosen experts: a choice a block, or a group of them (note [expert groups]).
#include <algorithm>

#include "7_plan/activations.h"
#include "7_plan/fused_parts.h"
#include "7_plan/int8_tiles.h"

namespace lane {
namespace {

ChoiceGroups groups_of(Lowering& to, const StepOp& op, const Ref& chosen, int64_t experts) {
  const int64_t choices = to.counted(op, chosen.shape.elements()), most = std::min(choices, experts);
  const int buffer = to.groups(op, chosen, experts);
  const auto part = [buffer](int64_t integers) {
    return BufferArg{buffer, uint64_t(integers) * sizeof(int32_t), Access::Read};
  };
  return {part(0), part(choices), part(choices + most), choices, most};
}

/// Activation rows that a block of a grouped product keeps, and what a row takes. No group has more than the tokens.
struct Part {
  int64_t rows, row_bytes;
};
Part part_of(const Lowering& to, const Format& format, int64_t columns, const Ref& chosen) {
  constexpr int64_t kMostRows = 8;  // with 16, fewer blocks fit a multiprocessor: slower by a fifth on an H200
  const int64_t row = prepared_bytes(activation_kind(to.options(), format), {1, 1, columns});
  const int64_t fit = grouped_shared_bytes(to.chip()) / row;
  return {std::clamp<int64_t>(fit, 1, std::min(kMostRows, chosen.shape.rows)), row};
}

void lower_grouped_product(Lowering& to, const StepOp& op) {
  const Matrix m = matrix_of(to, op);
  const Ref &w = op.operands[0], &x = op.operands[1];
  const int64_t columns = w.shape.columns;
  const ChoiceGroups groups = groups_of(to, op, op.operands[2], w.shape.experts);
  if (on_int8_tiles(to, op, groups)) return lower_grouped_int8_product(to, op, groups);
  const Arg activations = to.activations(op, x, columns, *m.format);
  const Part part = part_of(to, *m.format, columns, op.operands[2]);
  Launch& launch = to.launch(
      op, "grouped_product", dim(product_blocks(m.rows, groups.most, to.chip()), groups.most), dim(kProductThreads),
      {m.out, m.weights, m.bias, activations, groups.order, groups.expert, groups.first, groups.choices, m.rows,
       columns, part.row_bytes / 4, x.shape.elements() / columns, part.rows});
  specialize(to, launch, {m.format});
  launch.shared_bytes = uint32_t(part.rows * part.row_bytes);
}

void lower_grouped_gate(Lowering& to, const StepOp& op) {
  const Matrix gate = matrix_of(to, op.members[0]), up = matrix_of(to, op.members[1]);
  const Ref &x = op.operands[0], &w = op.members[0].operands[0];
  const int64_t columns = w.shape.columns;
  const ChoiceGroups groups = groups_of(to, op, op.operands[1], w.shape.experts);
  if (on_int8_tiles(to, op.members[0], groups) && on_int8_tiles(to, op.members[1], groups))
    return lower_grouped_int8_gate(to, op, groups);
  const Arg activations = to.activations(op, x, columns, *gate.format);
  const Part part = part_of(to, *gate.format, columns, op.operands[1]);
  Launch& launch =
      to.launch(op, "grouped_gated_product", dim(product_blocks(gate.rows, groups.most, to.chip()), groups.most),
                dim(kProductThreads),
                {to.out(op.result), gate.weights, up.weights, gate.bias, up.bias, activations, groups.order,
                 groups.expert, groups.first, op.option(OptionKey::Limit), op.option(OptionKey::Slope), groups.choices,
                 gate.rows, columns, part.row_bytes / 4, x.shape.elements() / columns, part.rows});
  specialize(to, launch, {gate.format, up.format});
  launch.shared_bytes = uint32_t(part.rows * part.row_bytes);
  launch.template_arguments.push_back(functor_of(op.kind));
}

}  // namespace

int Lowering::groups(const StepOp& op, const Ref& chosen, int64_t experts) {
  for (const Groups& known : groups_)
    if (known.chosen == chosen) return known.buffer;
  constexpr int64_t kMostWarps = 32;
  const int64_t choices = chosen.shape.elements(), most = std::min(choices, experts);
  const int64_t integers = choices + most + most + 1;
  const int buffer = scratch(step_.arrays[size_t(chosen.index)].name + ".groups", integers * int64_t(sizeof(int32_t)));
  const auto part = [buffer](int64_t at) { return BufferArg{buffer, uint64_t(at) * sizeof(int32_t), Access::Write}; };
  StepOp none;
  none.ops = op.ops;
  launch(none, "group_choices", dim(ceil_div(experts, kMostWarps)), dim(kWarpThreads * std::min(experts, kMostWarps)),
         {part(0), part(choices), part(choices + most), in(chosen), choices, experts, most})
      .shared_bytes = uint32_t(experts * int64_t(sizeof(int32_t)));
  groups_.push_back({chosen, buffer});
  return buffer;
}

void lower_chosen_product(Lowering& to, const StepOp& op) {
  if (op.parts.grouped) return lower_grouped_product(to, op);
  const Matrix m = matrix_of(to, op);
  const Ref &w = op.operands[0], &x = op.operands[1], &chosen = op.operands[2];
  const int64_t columns = w.shape.columns, count = to.counted(op, chosen.shape.elements());
  Launch& launch = to.launch(
      op, "chosen_product", dim(product_blocks(m.rows, count, to.chip()), count), dim(kProductThreads),
      {m.out, m.weights, m.bias, to.in(x), to.in(chosen), count, m.rows, columns, x.shape.elements() / columns});
  prepare(to, launch, {1, 1, columns}, false, {m.format});
}

void lower_expert_gate(Lowering& to, const StepOp& op) {
  if (op.members[0].parts.grouped) return lower_grouped_gate(to, op);
  const Matrix gate = matrix_of(to, op.members[0]), up = matrix_of(to, op.members[1]);
  const Ref &x = op.operands[0], &chosen = op.operands[1];
  const int64_t columns = op.members[0].operands[0].shape.columns;
  const int64_t count = to.counted(op, chosen.shape.elements());
  Launch& launch = to.launch(op, "chosen_gated_product", dim(product_blocks(gate.rows, count, to.chip()), count),
                             dim(kProductThreads),
                             {to.out(op.result), gate.weights, up.weights, gate.bias, up.bias, to.in(x), to.in(chosen),
                              op.option(OptionKey::Limit), op.option(OptionKey::Slope), count, gate.rows, columns,
                              x.shape.elements() / columns});
  prepare(to, launch, {1, 1, columns}, false, {gate.format, up.format});
  launch.template_arguments.push_back(functor_of(op.kind));
}

}  // namespace lane
