// Launches of streamed products: ops/streamed_product.cuh. Token t is blockIdx.y.
#include "7_plan/lower.h"
#include "7_plan/streamed.h"
#include "ops/streamed_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

const Placement& matrix_of(const Weights& weights, const StepOp& product) {
  return weights.placements[size_t(product.operands[0].index)];
}

/// int8 words of an activation; 0 for floats.
int words_of(const Lowering& to, const Format& format) {
  const ActivationKind kind = activation_kind(to.options(), format);
  return kind == ActivationKind::Floats   ? kernels::kFloatActivations
         : kind == ActivationKind::Int8x2 ? kernels::kTwoWords
                                          : kernels::kOneWord;
}

struct Streamed {
  std::vector<const Placement*> matrices;
  int columns = 0, words = 0;
  kernels::StreamedGeometry geometry;
};
Streamed streamed(const Lowering& to, const std::vector<const StepOp*>& products, bool gated) {
  Streamed s;
  std::vector<kernels::StreamedMatrix> shapes;
  for (const StepOp* product : products) {
    const Placement& p = matrix_of(to.weights(), *product);
    s.matrices.push_back(&p);
    shapes.push_back({find_repacked(*p.format)->bytes_256, int(p.shape.rows)});
  }
  s.columns = int(s.matrices[0]->shape.columns);
  s.words = words_of(to, *s.matrices[0]->format);
  s.geometry = kernels::streamed_geometry(s.columns, shapes.data(), gated ? 1 : int(shapes.size()), gated, s.words,
                                          to.chip().multiprocessors, to.chip().shared_bytes);
  return s;
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

Dim3 grid_of(const Streamed& s, const Ref& x) { return dim(s.geometry.grid, x.shape.rows); }

}  // namespace

bool is_streamed(const Weights& weights, const StepOp& product) {
  const Ref& w = product.operands[0];
  return w.kind == Ref::Kind::Weight && w.index >= 0 &&
         weights.placements[size_t(w.index)].layout == DeviceLayout::Repacked;
}

bool streams_norm(int64_t columns) { return columns <= kernels::kStreamedMaxNormed; }

bool streams_gate(const Weights& weights, const StepOp& gate, const StepOp& up, const StepOp& of) {
  if (!is_streamed(weights, gate) || !is_streamed(weights, up)) return false;
  const Placement &g = matrix_of(weights, gate), &u = matrix_of(weights, up);
  return (of.kind == OpKind::SiluGate || of.kind == OpKind::GeluGate) && g.format == u.format && g.shape == u.shape &&
         kernels::streamed_fits(int(g.shape.columns), true);
}

void lower_streamed_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[1];
  const Streamed s = streamed(to, {&op}, false);
  const kernels::StreamedShare& share = s.geometry.share[0];
  Launch& launch = to.launch(
      op, "streamed_product", grid_of(s, x), dim(s.geometry.threads),
      {to.out(op.result), to.in(op.operands[0]), to.in(x), to.in(op.parts.norm), op.parts.epsilon, to.in(op.parts.bias),
       to.in(op.parts.residual), s.matrices[0]->shape.rows, int64_t(share.rows_per_block), int64_t(share.ring)});
  specialize(launch, s, 1);
}

void lower_streamed_products(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  std::vector<const StepOp*> products;
  for (const StepOp& member : op.members) products.push_back(&member);
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
  std::vector<Arg> args = outs;
  auto add = [&](const std::vector<Arg>& more) { args.insert(args.end(), more.begin(), more.end()); };
  add(weights), add({to.in(x), to.in(op.parts.norm), op.parts.epsilon}), add(biases), add(rows), add(blocks);
  add(rows_per_block), add(rings);
  specialize(to.launch(op, "streamed_products", grid_of(s, x), dim(s.geometry.threads), args), s, 3);
}

void lower_streamed_gated_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const StepOp &gate = op.members[0], &up = op.members[1];
  const Streamed s = streamed(to, {&gate, &up}, true);
  const kernels::StreamedShare& share = s.geometry.share[0];
  Launch& launch = to.launch(op, "streamed_gated_product", grid_of(s, x), dim(s.geometry.threads),
                             {to.out(op.result), to.in(gate.operands[0]), to.in(up.operands[0]), to.in(x),
                              to.in(op.parts.norm), op.parts.epsilon, int64_t(op.kind == OpKind::GeluGate),
                              s.matrices[0]->shape.rows, int64_t(share.rows_per_block), int64_t(share.ring)});
  specialize(launch, s, 1);
}

}  // namespace lane
