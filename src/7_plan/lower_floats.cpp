// Launches of products of float weights with several tokens: ops/batched_product.cuh. Their vectors are made by a
// launch before them, once for all products that read them.
#include <algorithm>

#include "7_plan/lower.h"
#include "7_plan/streamed.h"
#include "ops/batched_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

/// A product as the kernels see it.
struct Shared {
  const Placement* matrix;
  const RepackedFormat* repacked;
  int columns, tokens;
  kernels::BatchedGeometry geometry;
};
Shared shared(const Lowering& to, const StepOp& product, const Ref& x, bool gated) {
  const Placement& p = to.weights().placements[size_t(product.operands[0].index)];
  Shared s{&p, find_repacked(*p.format), int(p.shape.columns), int(x.shape.rows), {}};
  s.geometry = kernels::batched_geometry(s.columns, s.repacked->bytes_256, int(p.shape.rows), s.tokens, gated,
                                         to.chip().multiprocessors, to.chip().shared_bytes);
  return s;
}

/// `x`, normed where `around` has a norm, as the kernel takes it.
Arg vectors_of(Lowering& to, const StepOp& around, const Ref& x, const Shared& s, bool gated) {
  return to.vectors(around, x,
                    {"float_vectors", s.repacked, s.columns, kernels::kFloatActivations, gated,
                     int64_t(kernels::float_vectors_bytes(s.columns, s.tokens))});
}

void launch(Lowering& to, const StepOp& around, std::string_view kernel, const Shared& s, std::vector<Arg> args) {
  args.insert(args.end(), {s.matrix->shape.rows, int64_t(s.tokens), int64_t(s.geometry.ring)});
  Launch& made =
      to.launch(around, kernel, dim(s.geometry.grid_x, s.geometry.grid_y), dim(s.geometry.threads), std::move(args));
  made.template_arguments = {std::string(s.repacked->name), std::to_string(s.columns)};
  made.includes = {std::string(s.repacked->file)};
  made.shared_bytes = uint32_t(s.geometry.shared_bytes);
}

void lower_one(Lowering& to, const StepOp& around, const StepOp& product, const Ref& x) {
  const Shared s = shared(to, product, x, false);
  const Arg vectors = vectors_of(to, around, x, s, false);
  launch(to, around, "batched_product", s,
         {to.out(product.result), to.in(product.operands[0]), vectors, to.in(product.parts.bias),
          to.in(product.parts.residual)});
}

}  // namespace

bool shares_floats(const Lowering& to, const std::vector<const StepOp*>& products, const Ref& x, bool gated) {
  return x.shape.rows > 1 && std::all_of(products.begin(), products.end(), [&](const StepOp* product) {
           const Shared s = shared(to, *product, x, gated);
           return activation_words(to.options(), *s.matrix->format) == kernels::kFloatActivations &&
                  kernels::has_shared(s.geometry, to.chip().shared_bytes);
         });
}

void lower_float_product(Lowering& to, const StepOp& op) { lower_one(to, op, op, op.operands[1]); }

void lower_float_products(Lowering& to, const StepOp& op) {
  for (const StepOp& member : op.members) lower_one(to, op, member, op.operands[0]);
}

void lower_float_gated_product(Lowering& to, const StepOp& op) {
  const Ref& x = op.operands[0];
  const StepOp &gate = op.members[0], &up = op.members[1];
  const Shared s = shared(to, gate, x, true);
  const Arg vectors = vectors_of(to, op, x, s, true);
  launch(to, op, "batched_gated_product", s,
         {to.out(op.result), to.in(gate.operands[0]), to.in(up.operands[0]), vectors,
          int64_t(op.kind == OpKind::GeluGate)});
}

}  // namespace lane
