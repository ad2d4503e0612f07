// Launches of products of float weights with several tokens. Their vectors are made by a launch before them, once for
// all products that read them. A batch's have the bits of each sequence alone (ops/batched_product.cuh), and so have a
// short chunk's; a longer chunk's are the tensor cores' (ops/mma_product.cuh, ops/wide_product.cuh).
#include <algorithm>
#include <array>

#include "7_plan/repacked_matrices.h"
#include "7_plan/streamed.h"
#include "ops/batched_geometry.h"
#include "ops/mma_geometry.h"
#include "ops/wide_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

// Measured on one H200 (docs/performance.md): fewer tokens take longer than they save.
constexpr int kLeastMmaTokens = 16, kLeastWideTokens = 64;

// Matrices as they lie in the file, that kernels here read.
constexpr std::array kStored = {
    RepackedFormat{FormatId::F16, "StoredF16", "layout/floats.cuh", 512},
    RepackedFormat{FormatId::BF16, "StoredBF16", "layout/floats.cuh", 512},
};

/// A product as the planner asks for its geometry.
struct Problem {
  int columns, bytes_256, rows, tokens;
  bool gated, repacked;
  const Chip& chip;
};

/// How a kernel of the family is launched.
struct Geometry {
  Dim3 grid;
  int threads, shared_bytes;
  std::vector<int> template_arguments;  // behind the columns
  std::vector<Arg> arguments;           // behind rows and tokens
  int tile;                             // tokens of the vectors
  bool fits;
};
/// The host chip has portable bodies, which take longer than its other products: so they are asked for, by streaming.
bool computes(bool on_chip, const Problem& p) { return on_chip || (p.chip.capability == 0 && p.repacked); }

Geometry batched(const Problem& p) {
  if (!p.repacked) return {};  // rows as stored have no slices to share out
  const kernels::BatchedGeometry g = kernels::batched_geometry(p.columns, p.bytes_256, p.rows, p.tokens, p.gated,
                                                               p.chip.multiprocessors, p.chip.shared_bytes);
  return {dim(g.grid_x, g.grid_y),           g.threads, g.shared_bytes, {}, {int64_t(g.ring)}, kernels::kTokenGroup,
          has_shared(g, p.chip.shared_bytes)};
}
Geometry mma(const Problem& p) {
  const kernels::MmaGeometry g = kernels::mma_geometry(p.rows, p.tokens, p.gated, p.chip.multiprocessors);
  return {dim(g.grid_x, g.grid_y),
          g.threads,
          g.shared_bytes,
          {g.rows, g.tokens},
          {},
          kernels::mma_vector_tile(p.tokens),
          computes(p.chip.bf16_mma, p) && kernels::mma_fits(p.columns, p.gated, p.chip.shared_bytes)};
}
Geometry wide(const Problem& p) {
  const kernels::WideGeometry g = kernels::wide_geometry(p.rows, p.tokens, p.gated, p.chip.multiprocessors);
  return {dim(g.grid_x, g.grid_y),
          g.threads,
          g.shared_bytes,
          {g.groups, g.tiles},
          {},
          kernels::kWideTokens,
          p.repacked && computes(p.chip.wgmma, p) && has_shared(g, p.chip.shared_bytes) &&
              fills(g, p.chip.multiprocessors)};
}

struct Family {
  std::string_view product, gated, vectors;
  size_t (*vectors_bytes)(int columns, int tokens);
  Geometry (*geometry)(const Problem&);
  int least_tokens;
  bool decode_bits;  // a batch wants them
};
// The first that fits is taken.
constexpr Family kFamilies[] = {
    {"wide_product", "wide_gated_product", "split_vectors", kernels::split_vectors_bytes, wide, kLeastWideTokens,
     false},
    {"mma_product", "mma_gated_product", "split_vectors", kernels::split_vectors_bytes, mma, kLeastMmaTokens, false},
    {"batched_product", "batched_gated_product", "float_vectors", kernels::float_vectors_bytes, batched, 2, true},
};

/// How the kernels name what the matrix lies as; null for what none of them reads. `--activations f32` asks for exact
/// activations and sums in double, whatever the weights.
const RepackedFormat* layout_of(const Lowering& to, const Placement& p) {
  if (p.layout == DeviceLayout::Repacked) return find_repacked(*p.format);
  const auto at =
      std::find_if(kStored.begin(), kStored.end(), [&](const auto& s) { return int32_t(s.format) == p.format->id; });
  return at == kStored.end() || to.options().activations == Activations::F32 ? nullptr : &*at;
}
Problem problem(const Lowering& to, const Placement& p, const RepackedFormat& layout, const Ref& x, bool gated) {
  return {int(p.shape.columns),
          layout.bytes_256,
          int(p.shape.rows),
          int(x.shape.rows),
          gated,
          p.layout == DeviceLayout::Repacked,
          to.chip()};
}

/// Null where no family takes the product.
const Family* family(const Lowering& to, const StepOp& product, const Ref& x, bool gated) {
  const Placement& matrix = matrix_of(to.weights(), product);
  const RepackedFormat* layout = layout_of(to, matrix);
  if (!layout) return nullptr;
  const Problem p = problem(to, matrix, *layout, x, gated);
  for (const Family& f : kFamilies)
    if (p.tokens >= f.least_tokens && (f.decode_bits || to.sequences() == 1) && f.geometry(p).fits) return &f;
  return nullptr;
}

/// `around` says the vectors' norm; `matrices`, `after_vectors`: the kernel's arguments before and behind the vectors.
void lower_shared(Lowering& to, const StepOp& around, const StepOp& product, const Ref& x, bool gated,
                  std::vector<Arg> matrices, std::vector<Arg> after_vectors) {
  const Family& f = *family(to, product, x, gated);
  const RepackedFormat& layout = *layout_of(to, matrix_of(to.weights(), product));
  const Problem p = problem(to, matrix_of(to.weights(), product), layout, x, gated);
  const Geometry g = f.geometry(p);
  std::vector<Arg> args = std::move(matrices);
  args.push_back(to.vectors(around, x,
                            row_vectors(f.vectors, layout, p.columns, kernels::kFloatActivations, gated, g.tile,
                                        int64_t(f.vectors_bytes(p.columns, p.tokens)))));
  args.insert(args.end(), after_vectors.begin(), after_vectors.end());
  args.insert(args.end(), {int64_t(p.rows), int64_t(p.tokens)});
  args.insert(args.end(), g.arguments.begin(), g.arguments.end());
  Launch& made = to.launch(around, gated ? f.gated : f.product, g.grid, dim(g.threads), std::move(args));
  made.template_arguments = {std::string(layout.name), std::to_string(p.columns)};
  for (const int argument : g.template_arguments) made.template_arguments.push_back(std::to_string(argument));
  made.includes = {std::string(layout.file)};
  made.shared_bytes = uint32_t(g.shared_bytes);
}

void lower_one(Lowering& to, const StepOp& around, const StepOp& product, const Ref& x) {
  lower_shared(to, around, product, x, false, {to.out(product.result), to.in(product.operands[0])},
               {to.in(product.parts.bias), to.in(product.parts.residual)});
}

}  // namespace

bool shares_floats(const Lowering& to, const std::vector<const StepOp*>& products, const Ref& x, bool gated) {
  return std::all_of(products.begin(), products.end(), [&](const StepOp* product) {
    return activation_words(to.options(), *matrix_of(to.weights(), *product).format) == kernels::kFloatActivations &&
           family(to, *product, x, gated) != nullptr;
  });
}

void lower_float_product(Lowering& to, const StepOp& op) { lower_one(to, op, op, op.operands[1]); }

void lower_float_products(Lowering& to, const StepOp& op) {
  for (const StepOp& member : op.members) lower_one(to, op, member, op.operands[0]);
}

void lower_float_gated_product(Lowering& to, const StepOp& op) {
  const StepOp &gate = op.members[0], &up = op.members[1];
  lower_shared(to, op, gate, op.operands[0], true, {to.out(op.result), to.in(gate.operands[0]), to.in(up.operands[0])},
               {int64_t(op.kind == OpKind::GeluGate)});
}

}  // namespace lane
