// Launches of products of several tokens on repacked matrices: ops/tiled_product.cuh. Their vectors are quantized by a
// launch before them, once for all products that read them.
#include <algorithm>

#include "7_plan/lower.h"
#include "7_plan/streamed.h"
#include "ops/tiled_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

/// A product as the kernels see it.
struct Tiled {
  const Placement* matrix;
  const RepackedFormat* repacked;
  int columns, words;
  kernels::TiledGeometry geometry;
};
Tiled tiled(const Lowering& to, const StepOp& product, const Ref& x, bool gated) {
  const Placement& p = to.weights().placements[size_t(product.operands[0].index)];
  Tiled t{&p, find_repacked(*p.format), int(p.shape.columns), activation_words(to.options(), *p.format), {}};
  t.geometry = kernels::tiled_geometry(t.columns, t.repacked->bytes_256, int(p.shape.rows), int(x.shape.rows), gated,
                                       to.chip().multiprocessors, to.chip().shared_bytes);
  return t;
}

Dim3 grid_of(const Tiled& t) { return dim(t.geometry.grid_x, t.geometry.grid_y); }

void specialize(Launch& launch, const Tiled& t) {
  launch.template_arguments = {std::string(t.repacked->name), std::to_string(t.columns), std::to_string(t.words),
                               std::to_string(t.geometry.tokens), std::to_string(t.geometry.tiles)};
  launch.includes = {std::string(t.repacked->file)};
  launch.shared_bytes = uint32_t(t.geometry.shared_bytes);
}

/// `x`, normed where `around` has a norm, as `t`'s kernel takes it.
Arg vectors_of(Lowering& to, const StepOp& around, const Ref& x, const Tiled& t, bool gated) {
  const size_t bytes = kernels::quantized_vectors_bytes(t.columns, t.words, int(x.shape.rows));
  return to.vectors(around, x,
                    {"quantize_vectors", t.repacked, t.columns, t.words, gated, kernels::kTokenGroup, int64_t(bytes)});
}

void lower_one(Lowering& to, const StepOp& around, const StepOp& product, const Ref& x) {
  const Tiled t = tiled(to, product, x, false);
  const Arg vectors = vectors_of(to, around, x, t, false);
  specialize(to.launch(around, "tiled_product", grid_of(t), dim(t.geometry.threads),
                       {to.out(product.result), to.in(product.operands[0]), vectors, to.in(product.parts.bias),
                        to.in(product.parts.residual), t.matrix->shape.rows, x.shape.rows, int64_t(t.geometry.ring)}),
             t);
}

}  // namespace

bool is_tiled(const Lowering& to, const std::vector<const StepOp*>& products, const Ref& x, bool gated) {
  return x.shape.rows > 1 && std::all_of(products.begin(), products.end(), [&](const StepOp* product) {
           const Tiled t = tiled(to, *product, x, gated);
           return t.words != kernels::kFloatActivations && kernels::has_shared(t.geometry, to.chip().shared_bytes);
         });
}

void lower_tiled_product(Lowering& to, const StepOp& op) { lower_one(to, op, op, op.operands[1]); }

void lower_tiled_products(Lowering& to, const StepOp& op) {
  for (const StepOp& member : op.members) lower_one(to, op, member, op.operands[0]);
}

void lower_tiled_gated_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const StepOp &gate = op.members[0], &up = op.members[1];
  const Tiled t = tiled(to, gate, x, true);
  const Arg vectors = vectors_of(to, op, x, t, true);
  specialize(
      to.launch(op, "tiled_gated_product", grid_of(t), dim(t.geometry.threads),
                {to.out(op.result), to.in(gate.operands[0]), to.in(up.operands[0]), vectors,
                 int64_t(op.kind == OpKind::GeluGate), t.matrix->shape.rows, x.shape.rows, int64_t(t.geometry.ring)}),
      t);
}

Arg Lowering::vectors(const StepOp& op, const Ref& x, const VectorsOf& of) {
  for (const Vectors& known : vectors_)
    if (known.source == x && known.norm == op.parts.norm && known.epsilon == op.parts.epsilon && known.of == of)
      return whole(known.buffer, Access::Read);
  const int tokens = int(x.shape.rows);
  const int buffer = scratch(step_.arrays[size_t(x.index)].name + ".vectors", of.bytes);
  StepOp none;
  none.ops = op.ops;
  Launch& made = launch(none, of.kernel, dim(ceil_div(tokens, of.tile) * of.tile),
                        dim(32 * kernels::streamed_warps(of.columns, of.gated)),
                        {whole(buffer, Access::Write), in(x), in(op.parts.norm), op.parts.epsilon, int64_t(tokens)});
  made.template_arguments = {std::string(of.layout->name), std::to_string(of.columns)};
  if (of.words != kernels::kFloatActivations) made.template_arguments.push_back(std::to_string(of.words));
  made.template_arguments.push_back(of.gated ? "2" : "1");
  made.includes = {std::string(of.layout->file)};
  const kernels::Slices s = kernels::slices(of.columns);
  made.shared_bytes = uint32_t(kernels::streamed_vector_bytes(of.words, s.full) * s.count);
  vectors_.push_back({x, op.parts.norm, op.parts.epsilon, of, buffer});
  return whole(buffer, Access::Read);
}

}  // namespace lane
