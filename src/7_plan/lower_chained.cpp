// Launches of chained products: ops/chained_products.cuh.
//
// note [links]
// Blocks of such a launch hand others of it its first product through a link, which is +0 before. The launches of a
// step take turns with two links, and each restores the one of the launch before it, whose blocks have all ended. Where
// their number is odd, the step's last launch takes the third, since the next step's first must not find its own link
// unrestored. So a step with one such op has it as two launches.
#include <algorithm>

#include "7_plan/repacked_matrices.h"
#include "7_plan/rule_parts.h"
#include "7_plan/streamed.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

/// The chained ops of the step, and which of them this one is.
struct Turn {
  int index = 0, count = 0;
  int link(int at) const { return at == count - 1 && count % 2 ? 2 : at % 2; }
};
Turn turn_of(const Step& step, const StepOp& op) {
  Turn turn;
  for (const StepOp& other : step.ops) {
    if (other.fused != Fused::Chain) continue;
    if (&other == &op) turn.index = turn.count;
    turn.count++;
  }
  return turn;
}
Arg link(const Step& step, int number) { return StateArg{step.links + number, Access::ReadWrite}; }

/// What the kernels take of the first product and of the links.
std::vector<Arg> first_args(const Lowering& to, const StepOp& op, const StreamedLaunch& first) {
  const StepOp& product = op.members[0];
  const Turn turn = turn_of(to.step(), op);
  const kernels::StreamedShare& share = first.geometry.share[0];
  std::vector<Arg> args = {to.out(product.result),
                           link(to.step(), turn.link(turn.index)),
                           link(to.step(), turn.link((turn.index + turn.count - 1) % turn.count)),
                           to.in(product.operands[0]),
                           to.in(product.operands[1]),
                           to.in(product.parts.bias)};
  if (absent(op.members[1].parts.post)) args.push_back(to.in(product.parts.residual));
  append(args, {int64_t(share.blocks), int64_t(share.rows_per_block), int64_t(share.ring)});
  return args;
}
std::vector<Arg> gated_args(const Lowering& to, const StepOp& op, const StreamedLaunch& first,
                            const StreamedLaunch& s) {
  const StepOp& gated = op.members[1];
  const Parts& parts = gated.parts;
  const kernels::StreamedShare& share = s.geometry.share[0];
  std::vector<Arg> args = {to.out(gated.result)};
  if (!absent(parts.post)) args.push_back(to.out(parts.sum));
  append(args, first_args(to, op, first));
  append(args, {to.in(gated.members[0].operands[0]), to.in(gated.members[1].operands[0])});
  if (!absent(parts.post)) append(args, {to.in(parts.post), to.in(parts.carried), parts.post_epsilon});
  append(args, {to.in(parts.norm), parts.epsilon, int64_t(gated.kind == OpKind::GeluGate), s.placements[0]->shape.rows,
                int64_t(share.rows_per_block), int64_t(share.ring)});
  return args;
}
std::vector<Arg> products_args(const Lowering& to, const StepOp& op, const StreamedLaunch& first,
                               const StreamedLaunch& s) {
  const StepOp& products = op.members[1];
  const MatricesArgs matrices = matrices_args(to, products, s);
  std::vector<Arg> args = matrices.outs;
  append(args, first_args(to, op, first));
  append(args, matrices.weights);
  append(args, {to.in(products.parts.norm), products.parts.epsilon});
  append(args, matrices.shares);
  return args;
}

std::string_view kernel_of(const StepOp& next) {
  if (next.fused != Fused::GatedProduct) return "chained_products";
  return absent(next.parts.post) ? "chained_gated_product" : "chained_post_normed_gated_product";
}

/// Blocks of both stages have one size.
bool same_threads(const StepOp& product, const StepOp& next, const Weights& weights) {
  const bool gated = next.fused == Fused::GatedProduct;
  return kernels::streamed_threads(int(matrix_of(weights, product).shape.columns), false) ==
         kernels::streamed_threads(int(product.result.shape.columns), gated);
}

}  // namespace

bool chains(const RuleContext& c, const StepOp& product, const StepOp& next) {
  if (c.step.links < 0 || product.result.shape.rows != 1 || !absent(product.parts.norm)) return false;
  if (!absent(next.parts.post) && (next.fused != Fused::GatedProduct || !absent(product.parts.residual))) return false;
  if (product.result.shape.columns > c.step.states[size_t(c.step.links)].shape.columns) return false;
  if (!is_streamed(c.weights, product)) return false;
  for (const StepOp& member : next.members)
    if (!is_streamed(c.weights, member)) return false;
  return same_threads(product, next, c.weights);
}

void lower_chain(Lowering& to, const StepOp& op) {
  const StepOp &product = op.members[0], &next = op.members[1];
  const bool gated = next.fused == Fused::GatedProduct;
  if (turn_of(to.step(), op).count < 2) {
    lower_streamed_product(to, product);
    return gated ? lower_streamed_gated_product(to, next) : lower_streamed_products(to, next);
  }
  const StreamedLaunch first = streamed_launch(to, product), second = streamed_launch(to, next);
  Launch& launch =
      to.launch(op, kernel_of(next), dim(first.geometry.grid + second.geometry.grid), dim(first.geometry.threads),
                gated ? gated_args(to, op, first, second) : products_args(to, op, first, second));
  add_layouts(launch, first, 1);
  add_layouts(launch, second, gated ? 1 : kernels::kStreamedMaxMatrices);
  launch.shared_bytes = uint32_t(std::max(first.geometry.shared_bytes, second.geometry.shared_bytes));
}

}  // namespace lane
