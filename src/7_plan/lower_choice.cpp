// Ops that choose: the next token, and routed experts.
#include <fmt/format.h>

#include <algorithm>

#include "7_plan/lower.h"

namespace lane {
namespace {

constexpr int64_t kGreatestThreads = 256;

/// Blocks that share one row of logits: the choice is the same however many there are.
int64_t greatest_parts(int64_t columns, const Chip& chip) {
  return std::clamp<int64_t>(ceil_div(columns, 4 * kGreatestThreads), 1, chip.multiprocessors);
}

}  // namespace

void lower_greatest_of_parts(Lowering& to, const StepOp& op, int values, int indices, int64_t parts) {
  to.launch(op, "greatest", dim(op.result.shape.elements()), dim(kWarpThreads),
            {to.out(op.result), to.whole(values, Access::Read), to.whole(indices, Access::Read), parts, NullArg{},
             NullArg{}, int64_t(0), NullArg{}, NullArg{}});
}

void lower_greatest(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const int64_t rows = x.shape.rows, columns = x.shape.columns, parts = greatest_parts(columns, to.chip());
  const int values = to.scratch("greatest.values", rows * parts * int64_t(sizeof(float)));
  const int indices = to.scratch("greatest.indices", rows * parts * int64_t(sizeof(int32_t)));
  to.launch(op, "greatest_parts", dim(parts, rows), dim(kGreatestThreads),
            {to.whole(values, Access::Write), to.whole(indices, Access::Write), to.in(x), columns});
  lower_greatest_of_parts(to, op, values, indices, parts);
}

void lower_top_choice(Lowering& to, const StepOp& op) {
  const Ref& r = op.operands[0];
  const int64_t experts = r.shape.columns, groups = op.integer(OptionKey::Groups, 1);
  Launch& launch = to.launch(op, "top_choice", dim(r.shape.rows), dim(kWarpThreads),
                             {to.out(op.result), to.in(r), to.in_or_null(op, 1), experts, op.integer(OptionKey::Count),
                              groups, op.integer(OptionKey::Kept, groups), op.integer(OptionKey::By, kByScore)});
  launch.shared_bytes = uint32_t((2 * experts + groups) * int64_t(sizeof(float)));
}

void lower_chosen_share(Lowering& to, const StepOp& op) {
  const Ref &r = op.operands[0], &ids = op.operands[1];
  to.launch(op, "chosen_share", dim(r.shape.rows), dim(kWarpThreads),
            {to.out(op.result), to.in(r), to.in(ids), r.shape.columns, ids.shape.columns, op.integer(OptionKey::By),
             op.integer(OptionKey::Normalised), op.option(OptionKey::Factor)});
}

void lower_expert_bias(Lowering& to, const StepOp& op) {
  const Ref &bias = op.operands[0], &y = op.operands[1], &ids = op.operands[2];
  const int64_t total = y.shape.elements();
  to.launch_elements(op, "expert_bias", total,
                     {to.out(op.result), to.in(y), to.in(bias), to.in(ids), total, bias.shape.columns});
}

void lower_expert_sum(Lowering& to, const StepOp& op) {
  const Ref &d = op.operands[0], &share = op.operands[1];
  const int64_t total = op.result.shape.elements();
  to.launch_elements(op, "expert_sum", total,
                     {to.out(op.result), to.in(d), to.in(share), to.in(op.parts.residual), total, share.shape.columns,
                      op.result.shape.columns});
}

}  // namespace lane
