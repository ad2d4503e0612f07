// Launches of fused ops.
#include <algorithm>

#include "7_plan/activations.h"
#include "7_plan/lower.h"

namespace lane {
namespace {

constexpr int64_t kProductThreads = 256;  // as ops/product_rows.cuh says

/// A product's matrix, bias and the rest, as kernels take them.
struct Matrix {
  const Format* format;
  Arg out, weights, bias, residual;
  int64_t rows;
};
Matrix matrix_of(const Lowering& to, const StepOp& product) {
  const Ref& w = product.operands[0];
  return {to.weights().placements[size_t(w.index)].format,
          to.out(product.result),
          to.in(w),
          to.in(product.parts.bias),
          to.in(product.parts.residual),
          w.shape.rows};
}

/// The launch's shared memory for its activations, its policy and its formats.
void prepare(const Lowering& to, Launch& launch, const Ref& x, bool normed,
             std::initializer_list<const Format*> formats) {
  const ActivationKind kind = activation_kind(to.options(), **formats.begin());
  if (normed || kind != ActivationKind::Floats) launch.shared_bytes = uint32_t(prepared_bytes(kind, x.shape));
  launch.template_arguments = {policy_name(kind)};
  for (const Format* format : formats) {
    launch.template_arguments.emplace_back(format->name);
    launch.includes.emplace_back(format->kernel);
  }
}

}  // namespace

void lower_product(Lowering& to, const StepOp& op) {
  const Matrix m = matrix_of(to, op);
  const Ref& x = op.operands[1];
  Launch& launch = to.launch(op, "product", dim(product_blocks(m.rows, 1, to.chip())), dim(kProductThreads),
                             {m.out, m.weights, m.bias, m.residual, to.in(x), to.in(op.parts.norm), op.parts.epsilon,
                              m.rows, x.shape.columns, x.shape.rows});
  prepare(to, launch, x, op.parts.norm.kind != Ref::Kind::None, {m.format});
}

void lower_products(Lowering& to, const StepOp& op) {
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
  prepare(to, launch, x, op.parts.norm.kind != Ref::Kind::None, {m[0].format, m[1].format, m[2].format});
}

void lower_gated_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const Matrix gate = matrix_of(to, op.members[0]), up = matrix_of(to, op.members[1]);
  Launch& launch =
      to.launch(op, "gated_product", dim(product_blocks(gate.rows, 1, to.chip())), dim(kProductThreads),
                {to.out(op.result), gate.weights, up.weights, to.in(x), to.in(op.parts.norm), op.parts.epsilon,
                 op.option(OptionKey::Limit), op.option(OptionKey::Slope), gate.rows, x.shape.columns, x.shape.rows});
  prepare(to, launch, x, op.parts.norm.kind != Ref::Kind::None, {gate.format, up.format});
  launch.template_arguments.push_back(functor_of(op.kind));
}

}  // namespace lane
