// Launches of fused ops.
#include <algorithm>

#include "7_plan/activations.h"
#include "7_plan/fused_parts.h"
#include "7_plan/int8_tiles.h"
#include "7_plan/lower.h"
#include "7_plan/streamed.h"

namespace lane {
void lower_product(Lowering& to, const StepOp& op) {
  if (is_streamed(to.weights(), op)) return lower_streamed_product(to, op);
  const Ref& x = op.operands[1];
  if (shares_floats(to, {&op}, x, false)) return lower_float_product(to, op);
  if (on_int8_tiles(to, op, x.shape.rows)) return lower_int8_product(to, op);
  const Matrix m = matrix_of(to, op);
  Launch& launch = to.launch(op, "product", dim(product_blocks(m.rows, 1, to.chip())), dim(kProductThreads),
                             {m.out, m.weights, m.bias, m.residual, to.in(x), to.in(op.parts.norm), op.parts.epsilon,
                              m.rows, x.shape.columns, x.shape.rows});
  prepare(to, launch, x.shape, op.parts.norm.kind != Ref::Kind::None, {m.format});
}

void lower_products(Lowering& to, const StepOp& op) {
  if (is_streamed(to.weights(), op.members[0])) return lower_streamed_products(to, op);
  const Ref& x = op.operands[0];
  std::vector<Matrix> m;
  int64_t rows = 0;
  for (const StepOp& member : op.members) {
    m.push_back(matrix_of(to, member));
    rows += m.back().rows;
  }
  if (m.size() == 2) m.push_back({m[1].format, NullArg{}, NullArg{}, NullArg{}, NullArg{}, 0});
  const int64_t all = product_blocks(rows, 1, to.chip());
  int64_t blocks[3];
  for (size_t i = 0; i < 3; i++) blocks[i] = m[i].rows ? std::max<int64_t>(1, all * m[i].rows / rows) : 0;
  Launch& launch = to.launch(op, "products", dim(blocks[0] + blocks[1] + blocks[2]), dim(kProductThreads),
                             {m[0].out, m[1].out, m[2].out, m[0].weights, m[1].weights, m[2].weights, m[0].bias,
                              m[1].bias, m[2].bias, to.in(x), to.in(op.parts.norm), op.parts.epsilon, m[0].rows,
                              m[1].rows, m[2].rows, blocks[0], blocks[1], x.shape.columns, x.shape.rows});
  prepare(to, launch, x.shape, op.parts.norm.kind != Ref::Kind::None, {m[0].format, m[1].format, m[2].format});
}

void lower_gated_product(Lowering& to, const StepOp& op) {
  if (is_streamed(to.weights(), op.members[0])) return lower_streamed_gated_product(to, op);
  const Ref& x = op.operands[0];
  if (on_int8_tiles(to, op.members[0], x.shape.rows)) return lower_int8_gated_product(to, op);
  const Matrix gate = matrix_of(to, op.members[0]), up = matrix_of(to, op.members[1]);
  Launch& launch =
      to.launch(op, "gated_product", dim(product_blocks(gate.rows, 1, to.chip())), dim(kProductThreads),
                {to.out(op.result), gate.weights, up.weights, to.in(x), to.in(op.parts.norm), op.parts.epsilon,
                 op.option(OptionKey::Limit), op.option(OptionKey::Slope), gate.rows, x.shape.columns, x.shape.rows});
  prepare(to, launch, x.shape, op.parts.norm.kind != Ref::Kind::None, {gate.format, up.format});
  launch.template_arguments.push_back(functor_of(op.kind));
}

constexpr int kAttentionInputsWarps = 4;  // as fused/attention_inputs.cuh says
constexpr int64_t kAttentionInputsShared = 16 * 1024;

void lower_attention_inputs(Lowering& to, const StepOp& op) {
  const StepOp &query = op.members[0], &key = op.members[1], &value = op.members[2];
  const int64_t heads = op.integer(OptionKey::Heads), groups = op.integer(OptionKey::Groups);
  const int64_t width = op.integer(OptionKey::Width), value_width = op.integer(OptionKey::ValueWidth);
  const Ref& v = op.operands[2];
  std::vector<Arg> args{to.out(query.result), to.out(key.result), to.out(value.result)};
  for (const Ref& operand : op.operands) args.push_back(to.in(operand));
  args.insert(args.end(),
              {to.slots(), to.state_stride(), to.rows_per_sequence(v), heads, groups, width, value_width,
               op.integer(OptionKey::Turned), op.integer(OptionKey::Paired), op.option(OptionKey::Epsilon)});
  // A warp has a token's head. A chip has room for more warps than blocks, so a block has several, of tokens that they
  // divide.
  const int64_t head_bytes = 2 * std::max(width, value_width) * int64_t(sizeof(float)), tokens = v.shape.rows;
  int64_t warps = kAttentionInputsWarps;
  while (warps > 1 && (tokens % warps != 0 || warps * head_bytes > kAttentionInputsShared)) warps /= 2;
  Launch& launch = to.launch(op, "attention_inputs", dim(heads + 2 * groups, tokens / warps), dim(kWarpThreads * warps),
                             std::move(args));
  launch.template_arguments = {cache_type(to, key.result).name};
  launch.shared_bytes = uint32_t(warps * head_bytes);
}

void lower_routing(Lowering& to, const StepOp& op) {
  const StepOp &choice = op.members[0], &share = op.members[1];
  const Ref& r = op.operands[0];
  const int64_t experts = r.shape.columns, groups = choice.integer(OptionKey::Groups, 1);
  Launch& launch =
      to.launch(op, "route", dim(r.shape.rows), dim(kWarpThreads),
                {to.out(choice.result), to.out(share.result), to.in(r), to.in(op.operands[1]), to.in(op.operands[2]),
                 experts, choice.integer(OptionKey::Count), groups, choice.integer(OptionKey::Kept, groups),
                 choice.integer(OptionKey::By, kByScore), share.integer(OptionKey::By),
                 share.integer(OptionKey::Normalised), share.option(OptionKey::Factor)});
  launch.shared_bytes = uint32_t((2 * experts + groups) * int64_t(sizeof(float)));  // as ops/experts.cuh says
}

}  // namespace lane
