// Launches of streamed products: ops/streamed_product.cuh. Token t is blockIdx.y; but several tokens share launches of
// lower_tiled.cpp, for quantized vectors, or of lower_floats.cpp, which read the weights once.
#include <algorithm>

#include "7_plan/lower.h"
#include "7_plan/streamed.h"
#include "ops/streamed_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

const Placement& matrix_of(const Weights& weights, const StepOp& product) {
  return weights.placements[size_t(product.operands[0].index)];
}

struct Streamed {
  std::vector<const Placement*> matrices;
  int columns = 0, words = 0;
  kernels::StreamedGeometry geometry;
};
/// `options` and `chip` as the planner has them; products of matrices with one width.
Streamed streamed(const Weights& weights, const Options& options, const Chip& chip,
                  const std::vector<const StepOp*>& products, bool gated) {
  Streamed s;
  std::vector<kernels::StreamedMatrix> shapes;
  for (const StepOp* product : products) {
    const Placement& p = matrix_of(weights, *product);
    s.matrices.push_back(&p);
    shapes.push_back({find_repacked(*p.format)->bytes_256, int(p.shape.rows)});
  }
  s.columns = int(s.matrices[0]->shape.columns);
  s.words = activation_words(options, *s.matrices[0]->format);
  s.geometry = kernels::streamed_geometry(s.columns, shapes.data(), gated ? 1 : int(shapes.size()), gated, s.words,
                                          chip.multiprocessors, chip.shared_bytes);
  return s;
}
Streamed streamed(const Lowering& to, const std::vector<const StepOp*>& products, bool gated) {
  return streamed(to.weights(), to.options(), to.chip(), products, gated);
}

/// Layouts, columns and words: the kernels' template arguments.
void specialize(Launch& launch, const Streamed& s, size_t layouts) {
  for (size_t i = 0; i < layouts; i++) {
    const RepackedFormat& format = *find_repacked(*s.matrices[std::min(i, s.matrices.size() - 1)]->format);
    launch.template_arguments.emplace_back(format.name);
    launch.includes.emplace_back(format.file);
  }
  launch.template_arguments.push_back(std::to_string(s.columns));
  launch.template_arguments.push_back(std::to_string(s.words));
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
void append(std::vector<Arg>& args, const std::vector<Arg>& more) { args.insert(args.end(), more.begin(), more.end()); }

Dim3 grid_of(const Streamed& s, const Ref& x) { return dim(s.geometry.grid, x.shape.rows); }

}  // namespace

bool is_streamed(const Weights& weights, const StepOp& product) {
  const Ref& w = product.operands[0];
  return w.kind == Ref::Kind::Weight && w.index >= 0 &&
         weights.placements[size_t(w.index)].layout == DeviceLayout::Repacked;
}

bool streams_norm(int64_t columns) { return columns <= kernels::kStreamedMaxNormed; }

bool streams_post_norm(int64_t columns, bool gated) { return kernels::post_norm_fits(int(columns), gated); }

bool streams_together(const RuleContext& c, const std::vector<const StepOp*>& products) {
  return std::all_of(products.begin(), products.end(), [&](const StepOp* p) { return is_streamed(c.weights, *p); }) &&
         kernels::has_shared(streamed(c.weights, c.options, c.chip, products, false).geometry, c.chip.shared_bytes);
}

bool streams_gate(const RuleContext& c, const StepOp& gate, const StepOp& up, const StepOp& of) {
  if (!is_streamed(c.weights, gate) || !is_streamed(c.weights, up)) return false;
  const Placement &g = matrix_of(c.weights, gate), &u = matrix_of(c.weights, up);
  return (of.kind == OpKind::SiluGate || of.kind == OpKind::GeluGate) && g.format == u.format && g.shape == u.shape &&
         kernels::streamed_fits(int(g.shape.columns), true) &&
         kernels::has_shared(streamed(c.weights, c.options, c.chip, {&gate, &up}, true).geometry, c.chip.shared_bytes);
}

void lower_streamed_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[1];
  if (is_tiled(to, {&op}, x, false)) return lower_tiled_product(to, op);
  if (shares_floats(to, {&op}, x, false)) return lower_float_product(to, op);
  const Streamed s = streamed(to, {&op}, false);
  const kernels::StreamedShare& share = s.geometry.share[0];
  Launch& launch = to.launch(
      op, "streamed_product", grid_of(s, x), dim(s.geometry.threads),
      {to.out(op.result), to.in(op.operands[0]), to.in(x), to.in(op.parts.norm), op.parts.epsilon, to.in(op.parts.bias),
       to.in(op.parts.residual), s.matrices[0]->shape.rows, int64_t(share.rows_per_block), int64_t(share.ring)});
  specialize(launch, s, 1);
}

void lower_choice(Lowering& to, const StepOp& op) {
  const Streamed s = streamed(to, {&op}, false);
  const kernels::StreamedShare& share = s.geometry.share[0];
  const int values = to.scratch("choice.values", s.geometry.grid * int64_t(sizeof(float)));
  const int rows = to.scratch("choice.rows", s.geometry.grid * int64_t(sizeof(int32_t)));
  std::vector<Arg> args =
      input_args(to, op, {to.out(op.members[0].result), to.whole(values, Access::Write), to.whole(rows, Access::Write)},
                 {to.in(op.operands[0])}, op.operands[1]);
  append(args, {to.in(op.parts.bias), s.matrices[0]->shape.rows, int64_t(share.rows_per_block), int64_t(share.ring)});
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
  const Streamed s = streamed(to, products, false);
  std::vector<Arg> outs, weights, biases, rows, blocks, rows_per_block, rings;
  for (size_t i = 0; i < 3; i++) {
    const bool there = i < products.size();
    const kernels::StreamedShare& share = s.geometry.share[i];
    outs.push_back(there ? to.out(products[i]->result) : Arg(NullArg{}));
    weights.push_back(there ? to.in(products[i]->operands[0]) : Arg(NullArg{}));
    biases.push_back(there ? to.in(products[i]->parts.bias) : Arg(NullArg{}));
    rows.push_back(there ? s.matrices[i]->shape.rows : int64_t(0));
    blocks.push_back(int64_t(share.blocks));
    rows_per_block.push_back(int64_t(share.rows_per_block));
    rings.push_back(int64_t(share.ring));
  }
  std::vector<Arg> args = input_args(to, op, outs, weights, x);
  for (const auto& more : {biases, rows, blocks, rows_per_block, rings}) append(args, more);
  specialize(to.launch(op, kernel_of(op, "products"), grid_of(s, x), dim(s.geometry.threads), std::move(args)), s, 3);
}

void lower_streamed_gated_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const StepOp &gate = op.members[0], &up = op.members[1];
  if (is_tiled(to, {&gate}, x, true)) return lower_tiled_gated_product(to, op);
  if (shares_floats(to, {&gate}, x, true)) return lower_float_gated_product(to, op);
  const Streamed s = streamed(to, {&gate, &up}, true);
  const kernels::StreamedShare& share = s.geometry.share[0];
  std::vector<Arg> args = input_args(to, op, {to.out(op.result)}, {to.in(gate.operands[0]), to.in(up.operands[0])}, x);
  append(args, {int64_t(op.kind == OpKind::GeluGate), s.matrices[0]->shape.rows, int64_t(share.rows_per_block),
                int64_t(share.ring)});
  Launch& launch =
      to.launch(op, kernel_of(op, "gated_product"), grid_of(s, x), dim(s.geometry.threads), std::move(args));
  specialize(launch, s, 1);
}

}  // namespace lane
