// Launches of chained products: ops/chained_products.cuh.
//
// note [links]
// The blocks of such a launch hand each other its first product through a link, which is +0 before. The launches of a
// step take turns with two links, and each restores the one of the launch before it, whose blocks have all ended. Where
// their number is odd, the step's last launch takes the third, since the next step's first must not find its own link
// unrestored. So a step with one such op has it as two launches.
#include <algorithm>

#include "6_weights/repacked.h"
#include "7_plan/repacked_matrices.h"
#include "7_plan/rule_parts.h"
#include "7_plan/streamed.h"
#include "ops/chained_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

/// One of a launch's two stages.
struct Stage : RepackedMatrices {
  bool gated;
  kernels::ChainedStage geometry() const {
    return {columns, words, gated, shapes.data(), gated ? 1 : int(shapes.size())};
  }
};
Stage stage(const Weights& weights, const Options& options, const StepOp& op) {
  std::vector<const StepOp*> products;
  for (const StepOp& member : op.members) products.push_back(&member);
  if (products.empty()) products.push_back(&op);
  return {repacked_matrices(weights, options, products), op.fused == Fused::GatedProduct};
}

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

/// What both kernels take of the first product and of the links.
std::vector<Arg> first_args(const Lowering& to, const StepOp& op, const kernels::ChainedGeometry& g) {
  const StepOp& product = op.members[0];
  const Turn turn = turn_of(to.step(), op);
  return {to.out(product.result),
          link(to.step(), turn.link(turn.index)),
          link(to.step(), turn.link((turn.index + turn.count - 1) % turn.count)),
          to.in(product.operands[0]),
          to.in(product.operands[1]),
          to.in(product.parts.bias),
          to.in(product.parts.residual),
          int64_t(g.first_rows_per_block)};
}
std::vector<Arg> gated_args(const Lowering& to, const StepOp& gated, const kernels::ChainedGeometry& g,
                            const Stage& s) {
  return {to.in(gated.members[0].operands[0]),
          to.in(gated.members[1].operands[0]),
          to.in(gated.parts.norm),
          gated.parts.epsilon,
          int64_t(gated.kind == OpKind::GeluGate),
          s.placements[0]->shape.rows,
          int64_t(g.second[0].rows_per_block)};
}
std::vector<Arg> products_args(const Lowering& to, const StepOp& products, const kernels::ChainedGeometry& g,
                               const Stage& s) {
  std::vector<Arg> weights, biases, rows, blocks, rows_per_block;
  for (size_t i = 0; i < kernels::kStreamedMaxMatrices; i++) {
    const bool there = i < products.members.size();
    weights.push_back(there ? to.in(products.members[i].operands[0]) : Arg(NullArg{}));
    biases.push_back(there ? to.in(products.members[i].parts.bias) : Arg(NullArg{}));
    rows.push_back(there ? s.placements[i]->shape.rows : int64_t(0));
    blocks.push_back(int64_t(g.second[i].blocks));
    rows_per_block.push_back(int64_t(g.second[i].rows_per_block));
  }
  std::vector<Arg> args = weights;
  append(args, {to.in(products.parts.norm), products.parts.epsilon});
  for (const auto& more : {biases, rows, blocks, rows_per_block}) append(args, more);
  return args;
}
std::vector<Arg> outs(const Lowering& to, const StepOp& op) {
  if (op.fused == Fused::GatedProduct) return {to.out(op.result)};
  std::vector<Arg> args(kernels::kStreamedMaxMatrices, NullArg{});
  for (size_t i = 0; i < op.members.size(); i++) args[i] = to.out(op.members[i].result);
  return args;
}

}  // namespace

bool can_chain(const Options& options, const Chip& chip) {
  return streams(options, chip) &&
         std::find(options.fuse.begin(), options.fuse.end(), kChainRule) != options.fuse.end();
}

bool chains(const RuleContext& c, const StepOp& product, const StepOp& next) {
  if (c.step.links < 0 || product.result.shape.rows != 1 || !absent(product.parts.norm) || !absent(next.parts.post))
    return false;
  if (product.result.shape.columns > c.step.states[size_t(c.step.links)].shape.columns) return false;
  if (!is_streamed(c.weights, product)) return false;
  for (const StepOp& member : next.members)
    if (!is_streamed(c.weights, member)) return false;
  const Stage first = stage(c.weights, c.options, product), second = stage(c.weights, c.options, next);
  return second.columns == product.result.shape.columns &&
         kernels::chained_fits(first.geometry(), second.geometry(), c.chip.multiprocessors, c.chip.shared_bytes);
}

void lower_chain(Lowering& to, const StepOp& op) {
  const StepOp &product = op.members[0], &next = op.members[1];
  const bool gated = next.fused == Fused::GatedProduct;
  if (turn_of(to.step(), op).count < 2) {
    lower_streamed_product(to, product);
    return gated ? lower_streamed_gated_product(to, next) : lower_streamed_products(to, next);
  }
  const Stage first = stage(to.weights(), to.options(), product), second = stage(to.weights(), to.options(), next);
  const auto g =
      kernels::chained_geometry(first.geometry(), second.geometry(), to.chip().multiprocessors, to.chip().shared_bytes);
  std::vector<Arg> args = outs(to, next);
  append(args, first_args(to, op, g));
  append(args, gated ? gated_args(to, next, g, second) : products_args(to, next, g, second));
  append(args, {int64_t(g.ring), int64_t(g.slot_bytes), int64_t(g.vector_bytes), int64_t(g.sums)});
  Launch& launch =
      to.launch(op, gated ? "chained_gated_product" : "chained_products", dim(g.grid), dim(g.threads), std::move(args));
  add_layouts(launch, first, 1);
  add_layouts(launch, second, gated ? 1 : kernels::kStreamedMaxMatrices);
  launch.template_arguments.push_back(std::to_string(g.slot_rows));
  launch.shared_bytes = uint32_t(g.shared_bytes);
}

}  // namespace lane
