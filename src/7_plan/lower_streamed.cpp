// Launches of streamed products: ops/streamed_product.cuh. Token t is blockIdx.y; but several tokens share launches of
// lower_tiled.cpp, for quantized vectors, or of lower_floats.cpp, which read the weights once.
#include <algorithm>

#include "7_plan/repacked_matrices.h"
#include "7_plan/streamed.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

void specialize(Launch& launch, const StreamedLaunch& s, size_t layouts) {
  add_layouts(launch, s, layouts);
  launch.shared_bytes = uint32_t(s.geometry.shared_bytes);
}

/// The arguments of a streamed launch up to its vector's norm: `outs` and `weights`, and between them and after them
/// what the kernels of post_normed_products.cuh take besides.
std::vector<Arg> input_args(const Lowering& to, const StepOp& op, const std::vector<Arg>& outs,
                            const std::vector<Arg>& weights, const Ref& x) {
  std::vector<Arg> args = outs;
  const Parts& parts = op.parts;
  const bool post = parts.post.kind != Ref::Kind::None;
  if (post) args.push_back(to.out(parts.sum));
  args.insert(args.end(), weights.begin(), weights.end());
  args.push_back(to.in(x));
  if (post) args.insert(args.end(), {to.in(parts.post), to.in(parts.carried), parts.post_epsilon});
  args.insert(args.end(), {to.in(parts.norm), parts.epsilon});
  return args;
}
/// "streamed_products" or "post_normed_products".
std::string kernel_of(const StepOp& op, std::string_view name) {
  return (op.parts.post.kind != Ref::Kind::None ? "post_normed_" : "streamed_") + std::string(name);
}

Dim3 grid_of(const StreamedLaunch& s, const Ref& x) { return dim(s.geometry.grid, x.shape.rows); }

}  // namespace

const Placement& matrix_of(const Weights& weights, const StepOp& product) {
  return weights.placements[size_t(product.operands[0].index)];
}

RepackedMatrices repacked_matrices(const Weights& weights, const Options& options,
                                   const std::vector<const StepOp*>& products) {
  RepackedMatrices m;
  for (const StepOp* product : products) {
    const Placement& p = matrix_of(weights, *product);
    m.placements.push_back(&p);
    m.shapes.push_back({find_repacked(*p.format)->bytes_256, int(p.shape.rows)});
  }
  m.columns = int(m.placements[0]->shape.columns);
  m.words = activation_words(options, *m.placements[0]->format);
  return m;
}

StreamedLaunch streamed_launch(const Weights& weights, const Options& options, const Chip& chip,
                               const std::vector<const StepOp*>& products, bool gated) {
  StreamedLaunch s{repacked_matrices(weights, options, products), {}};
  s.geometry = kernels::streamed_geometry(s.columns, s.shapes.data(), gated ? 1 : int(s.shapes.size()), gated, s.words,
                                          chip.multiprocessors, chip.shared_bytes);
  return s;
}

StreamedLaunch streamed_launch(const Lowering& to, const StepOp& op) {
  std::vector<const StepOp*> products;
  for (const StepOp& member : op.members) products.push_back(&member);
  if (products.empty() || op.fused == Fused::Choice) products = {&op};
  return streamed_launch(to.weights(), to.options(), to.chip(), products, op.fused == Fused::GatedProduct);
}

MatricesArgs matrices_args(const Lowering& to, const StepOp& op, const StreamedLaunch& s) {
  MatricesArgs args;
  std::vector<Arg> biases, rows, blocks, rows_per_block, rings;
  for (size_t i = 0; i < kernels::kStreamedMaxMatrices; i++) {
    const bool there = i < op.members.size();
    const kernels::StreamedShare& share = s.geometry.share[i];
    args.outs.push_back(there ? to.out(op.members[i].result) : Arg(NullArg{}));
    args.weights.push_back(there ? to.in(op.members[i].operands[0]) : Arg(NullArg{}));
    biases.push_back(there ? to.in(op.members[i].parts.bias) : Arg(NullArg{}));
    rows.push_back(there ? s.placements[i]->shape.rows : int64_t(0));
    blocks.push_back(int64_t(share.blocks));
    rows_per_block.push_back(int64_t(share.rows_per_block));
    rings.push_back(int64_t(share.ring));
  }
  for (const auto& more : {biases, rows, blocks, rows_per_block, rings}) append(args.shares, more);
  return args;
}

void add_layouts(Launch& launch, const RepackedMatrices& matrices, size_t layouts) {
  for (size_t i = 0; i < layouts; i++) {
    const Placement& p = *matrices.placements[std::min(i, matrices.placements.size() - 1)];
    const RepackedFormat& format = *find_repacked(*p.format);
    launch.template_arguments.emplace_back(format.name);
    launch.includes.emplace_back(format.file);
  }
  launch.template_arguments.push_back(std::to_string(matrices.columns));
  launch.template_arguments.push_back(std::to_string(matrices.words));
}

bool is_streamed(const Weights& weights, const StepOp& product) {
  const Ref& w = product.operands[0];
  return w.kind == Ref::Kind::Weight && w.index >= 0 &&
         weights.placements[size_t(w.index)].layout == DeviceLayout::Repacked;
}

bool streams_norm(int64_t columns) { return columns <= kernels::kStreamedMaxNormed; }

bool streams_post_norm(int64_t columns, bool gated) { return kernels::post_norm_fits(int(columns), gated); }

bool streams_together(const RuleContext& c, const std::vector<const StepOp*>& products) {
  return std::all_of(products.begin(), products.end(), [&](const StepOp* p) { return is_streamed(c.weights, *p); }) &&
         kernels::has_shared(streamed_launch(c.weights, c.options, c.chip, products, false).geometry,
                             c.chip.shared_bytes);
}

bool streams_gate(const RuleContext& c, const StepOp& gate, const StepOp& up, const StepOp& of) {
  if (!is_streamed(c.weights, gate) || !is_streamed(c.weights, up)) return false;
  const Placement &g = matrix_of(c.weights, gate), &u = matrix_of(c.weights, up);
  return (of.kind == OpKind::SiluGate || of.kind == OpKind::GeluGate) && g.format == u.format && g.shape == u.shape &&
         kernels::streamed_fits(int(g.shape.columns), true) &&
         kernels::has_shared(streamed_launch(c.weights, c.options, c.chip, {&gate, &up}, true).geometry,
                             c.chip.shared_bytes);
}

void lower_streamed_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[1];
  if (is_tiled(to, {&op}, x, false)) return lower_tiled_product(to, op);
  if (shares_floats(to, {&op}, x, false)) return lower_float_product(to, op);
  const StreamedLaunch s = streamed_launch(to, op);
  const kernels::StreamedShare& share = s.geometry.share[0];
  Launch& launch = to.launch(
      op, "streamed_product", grid_of(s, x), dim(s.geometry.threads),
      {to.out(op.result), to.in(op.operands[0]), to.in(x), to.in(op.parts.norm), op.parts.epsilon, to.in(op.parts.bias),
       to.in(op.parts.residual), s.placements[0]->shape.rows, int64_t(share.rows_per_block), int64_t(share.ring)});
  specialize(launch, s, 1);
}

void lower_choice(Lowering& to, const StepOp& op) {
  const StreamedLaunch s = streamed_launch(to, op);
  const kernels::StreamedShare& share = s.geometry.share[0];
  const int values = to.scratch("choice.values", s.geometry.grid * int64_t(sizeof(float)));
  const int rows = to.scratch("choice.rows", s.geometry.grid * int64_t(sizeof(int32_t)));
  std::vector<Arg> args =
      input_args(to, op, {to.out(op.members[0].result), to.whole(values, Access::Write), to.whole(rows, Access::Write)},
                 {to.in(op.operands[0])}, op.operands[1]);
  append(args, {to.in(op.parts.bias), s.placements[0]->shape.rows, int64_t(share.rows_per_block), int64_t(share.ring)});
  Launch& launch =
      to.launch(op, kernel_of(op, "choice"), dim(s.geometry.grid), dim(s.geometry.threads), std::move(args));
  specialize(launch, s, 1);
  lower_greatest_of_parts(to, op.members[1], values, rows, s.geometry.grid);
}

void lower_streamed_products(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  std::vector<const StepOp*> products;
  for (const StepOp& member : op.members) products.push_back(&member);
  if (is_tiled(to, products, x, false)) return lower_tiled_products(to, op);
  if (shares_floats(to, products, x, false)) return lower_float_products(to, op);
  const StreamedLaunch s = streamed_launch(to, op);
  const MatricesArgs matrices = matrices_args(to, op, s);
  std::vector<Arg> args = input_args(to, op, matrices.outs, matrices.weights, x);
  append(args, matrices.shares);
  specialize(to.launch(op, kernel_of(op, "products"), grid_of(s, x), dim(s.geometry.threads), std::move(args)), s, 3);
}

void lower_streamed_gated_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const StepOp &gate = op.members[0], &up = op.members[1];
  if (is_tiled(to, {&gate}, x, true)) return lower_tiled_gated_product(to, op);
  if (shares_floats(to, {&gate}, x, true)) return lower_float_gated_product(to, op);
  const StreamedLaunch s = streamed_launch(to, op);
  const kernels::StreamedShare& share = s.geometry.share[0];
  std::vector<Arg> args = input_args(to, op, {to.out(op.result)}, {to.in(gate.operands[0]), to.in(up.operands[0])}, x);
  append(args, {int64_t(op.kind == OpKind::GeluGate), s.placements[0]->shape.rows, int64_t(share.rows_per_block),
                int64_t(share.ring)});
  Launch& launch =
      to.launch(op, kernel_of(op, "gated_product"), grid_of(s, x), dim(s.geometry.threads), std::move(args));
  specialize(launch, s, 1);
}

}  // namespace lane
