// Launches of products of several tokens on quantized repacked matrices. Their vectors are made by a launch before
// them, once for all products that read them. A batch's have the bits of each sequence alone (ops/tiled_product.cuh),
// and so have a short chunk's; a long chunk's are the tensor cores' of halves (ops/chunk_product.cuh).
#include <algorithm>

#include "7_plan/lower.h"
#include "7_plan/streamed.h"
#include "ops/chunk_geometry.h"
#include "ops/tiled_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

// Fewer tokens take longer on tensor cores of halves; so does less work than two for five multiprocessors of 64 rows
// and 64 tokens each, with up to 32 tokens than one for three.
constexpr int kLeastChunkTokens = 32;
bool fills(const kernels::ChunkGeometry& g, int tokens, const Chip& chip) {
  const int work = g.grid_x * g.tokens * g.grid_y * g.groups * (tokens > 32 ? 1 : g.parts) / kernels::kChunkTokens;
  return tokens > 32 ? 5 * work >= 2 * chip.multiprocessors : 3 * work >= chip.multiprocessors;
}
constexpr size_t kMostTogether = kernels::kMostTiledMatrices;  // matrices of a launch

/// A product as the kernels see it.
struct Problem {
  const RepackedFormat* repacked;
  int columns, words, rows, tokens;
  bool gated;
  const Chip& chip;
};
Problem problem(const Lowering& to, const StepOp& product, const Ref& x, bool gated) {
  const Placement& p = to.weights().placements[size_t(product.operands[0].index)];
  return {find_repacked(*p.format),
          int(p.shape.columns),
          activation_words(to.options(), *p.format),
          int(p.shape.rows),
          int(x.shape.rows),
          gated,
          to.chip()};
}

/// How a kernel of a family is launched.
struct Geometry {
  Dim3 grid;
  int threads, shared_bytes;
  std::vector<int> template_arguments;  // behind columns and words
  std::vector<Arg> arguments;           // behind rows and tokens
  bool fits;
  size_t partial_floats;  // what blocks that share rows leave
  int parts = 1;          // of a chunk's product
  /// Of several products in one launch that each have vectors of their own.
  struct Each {
    int blocks = 0, ring = 0;
    size_t partial_floats = 0;
  };
  std::vector<Each> each = {};
};
using Products = std::vector<Problem>;  // of the same vectors

kernels::TiledFormat tiled_format(const Problem& p) { return {p.repacked->bytes_256, p.repacked->word_shares}; }

/// Of all in one launch.
Geometry tiled_together(const Products& products) {
  std::vector<kernels::TiledMatrix> matrices;
  for (const Problem& p : products) matrices.push_back({tiled_format(p), p.rows});
  const Problem& p = products[0];
  const kernels::TiledProductsGeometry g = kernels::tiled_products_geometry(
      matrices.data(), int(matrices.size()), p.columns, p.tokens, p.chip.multiprocessors, p.chip.shared_bytes);
  Geometry all{dim(g.grid_x, g.grid_y, g.grid_z),  g.threads, g.shared_bytes, {g.tokens, g.tiles}, {},
               has_shared(g, p.chip.shared_bytes), 0};
  for (size_t i = 0; i < products.size(); i++) all.each.push_back({g.blocks[i], g.ring[i], g.partial_floats[i]});
  return all;
}
/// Of one, or of the first of too many for a launch: they are launched one by one.
Geometry tiled(const Products& products) {
  if (products.size() > 1 && products.size() <= kMostTogether) return tiled_together(products);
  const auto geometry = [](const Problem& p) {
    return kernels::tiled_geometry(p.columns, tiled_format(p), p.rows, p.tokens, p.gated, p.chip.multiprocessors,
                                   p.chip.shared_bytes);
  };
  const kernels::TiledGeometry g = geometry(products[0]);
  return {dim(g.grid_x, g.grid_y, g.grid_z),
          g.threads,
          g.shared_bytes,
          {g.tokens, g.tiles},
          {int64_t(g.ring)},
          std::all_of(products.begin(), products.end(),
                      [&](const Problem& p) { return has_shared(geometry(p), p.chip.shared_bytes); }),
          g.partial_floats};
}
/// Of all in one launch.
Geometry chunk(const Products& products) {
  std::vector<kernels::ChunkMatrix> matrices;
  for (const Problem& p : products) matrices.push_back({p.rows, p.repacked->bytes_256});
  const Problem& p = products[0];
  const kernels::ChunkGeometry g = kernels::chunk_geometry(matrices.data(), int(matrices.size()), p.columns, p.tokens,
                                                           p.gated, p.words, p.chip.multiprocessors);
  const bool computes = p.chip.wgmma || p.chip.capability == 0;  // the host chip has a portable body
  std::vector<int> template_arguments = {g.tokens, g.groups, g.splits};
  if (g.parts > 1) template_arguments.push_back(g.parts);
  return {
      dim(g.grid_x, g.grid_y, g.parts),
      g.threads,
      g.shared_bytes,
      template_arguments,
      {},
      products.size() <= kMostTogether && computes && has_shared(g, p.chip.shared_bytes) && fills(g, p.tokens, p.chip),
      kernels::chunk_partial_floats(g),
      g.parts};
}

Lowering::VectorsOf quantized_vectors(const Problem& p) {
  const size_t bytes = kernels::quantized_vectors_bytes(p.columns, p.words, p.tokens);
  Lowering::VectorsOf of =
      row_vectors("quantize_vectors", *p.repacked, p.columns, p.words, p.gated, kernels::kTokenGroup, int64_t(bytes));
  of.parts = kernels::quantize_parts(p.columns, p.tokens, p.chip.multiprocessors);
  return of;
}
Lowering::VectorsOf half_vectors(const Problem& p) {
  const size_t bytes = kernels::half_vectors_bytes(p.columns, p.words, p.tokens);
  return {"half_vectors",
          {std::to_string(p.columns), std::to_string(p.words)},
          "",
          kernels::kChunkTokens,
          kernels::half_vectors_threads(p.columns),
          0,
          int64_t(bytes)};
}

struct Family {
  std::string_view product, products, gated;  // products: of up to kMostTogether matrices in one launch
  std::string_view part_product;              // of several parts
  Lowering::VectorsOf (*vectors)(const Problem&);
  Geometry (*geometry)(const Products&);
  int least_tokens;
  bool decode_bits;                                               // a batch wants them
  size_t (*counters_offset)(int columns, int words, int tokens);  // of the vectors' counters
};
// The first that fits is taken.
constexpr Family kFamilies[] = {
    {"chunk_product", "chunk_products", "chunk_gated_product", "chunk_part_product", half_vectors, chunk,
     kLeastChunkTokens, false, kernels::chunk_counters_offset},
    {"tiled_product", "tiled_products", "tiled_gated_product", "tiled_product", quantized_vectors, tiled, 2, true,
     kernels::tiled_counters_offset},
};

/// Null where no family takes the products.
const Family* family(const Lowering& to, const Products& products) {
  for (const Problem& p : products)
    if (p.words == kernels::kFloatActivations) return nullptr;
  for (const Family& f : kFamilies)
    if (products[0].tokens >= f.least_tokens && (f.decode_bits || to.sequences() == 1) && f.geometry(products).fits)
      return &f;
  return nullptr;
}

/// Where the blocks that share a product's rows leave their sums.
Arg partial_sums(Lowering& to, const StepOp& product, size_t floats) {
  if (!floats) return NullArg{};
  const std::string& name = to.step().arrays[size_t(product.result.index)].name;
  return Lowering::whole(to.scratch(name + ".sums", int64_t(floats * sizeof(float))), Access::Write);
}
/// Who counts them: the counters of the vectors that `p` reads.
Arg counters(const Family& f, const Problem& p, const Arg& vectors) {
  BufferArg counters = std::get<BufferArg>(vectors);
  counters.byte_offset = f.counters_offset(p.columns, p.words, p.tokens);
  counters.access = Access::ReadWrite;
  return counters;
}

/// `around` says the vectors' norm; `matrices`, `after_vectors`: the kernel's arguments before and behind the vectors.
void lower_shared(Lowering& to, const StepOp& around, const StepOp& product, const Ref& x, bool gated,
                  std::vector<Arg> matrices, std::vector<Arg> after_vectors) {
  const Problem p = problem(to, product, x, gated);
  const Family& f = *family(to, {p});
  const Geometry g = f.geometry({p});
  std::vector<Arg> args = std::move(matrices);
  const Arg vectors = to.vectors(around, x, f.vectors(p));
  const auto add = [&](const std::vector<Arg>& more) { args.insert(args.end(), more.begin(), more.end()); };
  args.push_back(vectors);
  add(after_vectors), add({int64_t(p.rows), int64_t(p.tokens)}), add(g.arguments);
  const std::string_view name = gated ? f.gated : g.parts > 1 ? f.part_product : f.product;
  if (name == f.part_product)
    add({partial_sums(to, product, g.partial_floats), g.partial_floats ? counters(f, p, vectors) : Arg(NullArg{})});
  Launch& made = to.launch(around, name, g.grid, dim(g.threads), std::move(args));
  made.template_arguments = {std::string(p.repacked->name), std::to_string(p.columns), std::to_string(p.words)};
  for (const int argument : g.template_arguments) made.template_arguments.push_back(std::to_string(argument));
  made.includes = {std::string(p.repacked->file)};
  made.shared_bytes = uint32_t(g.shared_bytes);
}

void lower_one(Lowering& to, const StepOp& around, const StepOp& product, const Ref& x) {
  lower_shared(to, around, product, x, false, {to.out(product.result), to.in(product.operands[0])},
               {to.in(product.parts.bias), to.in(product.parts.residual)});
}

/// Up to kMostTogether products in one launch: of each argument of theirs, one for each, none for those left out.
class Together {
 public:
  Together(Lowering& to, const StepOp& op, const Family& f, const Products& products)
      : to_(to), op_(op), f_(f), products_(products), geometry_(f.geometry(products)) {}

  void lower() {
    const Problem& first = products_[0];
    const Arg vectors = to_.vectors(op_, op_.operands[0], f_.vectors(first));
    add([&](size_t i) { return to_.out(op_.members[i].result); });
    add([&](size_t i) { return to_.in(op_.members[i].operands[0]); });
    if (geometry_.each.empty())
      args_.push_back(vectors);
    else
      add([&](size_t i) { return to_.vectors(op_, op_.operands[0], f_.vectors(products_[i])); });
    add([&](size_t i) { return to_.in(op_.members[i].parts.bias); });
    add([&](size_t i) { return int64_t(products_[i].rows); }, int64_t(0));
    if (!geometry_.each.empty()) {
      add([&](size_t i) { return int64_t(geometry_.each[i].blocks); }, int64_t(0));
      add([&](size_t i) { return int64_t(geometry_.each[i].ring); }, int64_t(0));
    }
    args_.push_back(int64_t(first.tokens));
    if (!geometry_.each.empty()) {
      add([&](size_t i) { return partial_sums(to_, op_.members[i], geometry_.each[i].partial_floats); });
      args_.push_back(geometry_.each[0].partial_floats ? counters(f_, first, vectors) : Arg(NullArg{}));
    }
    launch();
  }

 private:
  template <class Of>
  void add(Of of, const Arg& none = NullArg{}) {
    for (size_t i = 0; i < kMostTogether; i++) args_.push_back(i < products_.size() ? Arg(of(i)) : none);
  }
  void launch() {
    Launch& made = to_.launch(op_, f_.products, geometry_.grid, dim(geometry_.threads), std::move(args_));
    for (size_t i = 0; i < kMostTogether; i++) {
      const RepackedFormat& layout = *products_[i < products_.size() ? i : 0].repacked;
      made.template_arguments.emplace_back(layout.name), made.includes.emplace_back(layout.file);
    }
    std::vector<int> numbers = {products_[0].columns, products_[0].words};
    numbers.insert(numbers.end(), geometry_.template_arguments.begin(), geometry_.template_arguments.end());
    for (const int number : numbers) made.template_arguments.push_back(std::to_string(number));
    made.shared_bytes = uint32_t(geometry_.shared_bytes);
  }

  Lowering& to_;
  const StepOp& op_;
  const Family& f_;
  const Products& products_;
  const Geometry geometry_;
  std::vector<Arg> args_;
};

}  // namespace

bool is_tiled(const Lowering& to, const std::vector<const StepOp*>& products, const Ref& x, bool gated) {
  Products problems;
  for (const StepOp* product : products) problems.push_back(problem(to, *product, x, gated));
  return x.shape.rows > 1 && family(to, problems) != nullptr;
}

void lower_tiled_product(Lowering& to, const StepOp& op) { lower_one(to, op, op, op.operands[1]); }

void lower_tiled_products(Lowering& to, const StepOp& op) {
  Products products;
  for (const StepOp& member : op.members) products.push_back(problem(to, member, op.operands[0], false));
  const Family& f = *family(to, products);
  if (products.size() <= kMostTogether) return Together(to, op, f, products).lower();
  for (const StepOp& member : op.members) lower_one(to, op, member, op.operands[0]);
}

void lower_tiled_gated_product(Lowering& to, const StepOp& op) {
  const StepOp &gate = op.members[0], &up = op.members[1];
  lower_shared(to, op, gate, op.operands[0], true, {to.out(op.result), to.in(gate.operands[0]), to.in(up.operands[0])},
               {int64_t(op.kind == OpKind::GeluGate)});
}

Lowering::VectorsOf row_vectors(std::string_view kernel, const RepackedFormat& layout, int columns, int words,
                                bool gated, int tile, int64_t bytes) {
  std::vector<std::string> arguments = {std::string(layout.name), std::to_string(columns)};
  if (words != kernels::kFloatActivations) arguments.push_back(std::to_string(words));
  arguments.push_back(gated ? "2" : "1");
  const kernels::Slices s = kernels::slices(columns);
  return {kernel,
          arguments,
          std::string(layout.file),
          tile,
          32 * kernels::streamed_warps(columns, gated),
          kernels::streamed_vector_bytes(words, s.full) * s.count,
          bytes};
}

Arg Lowering::vectors(const StepOp& op, const Ref& x, const VectorsOf& of) {
  for (const Vectors& known : vectors_)
    if (known.source == x && known.norm == op.parts.norm && known.epsilon == op.parts.epsilon && known.of == of)
      return whole(known.buffer, Access::Read);
  const int tokens = int(x.shape.rows);
  const int buffer = scratch(step_.arrays[size_t(x.index)].name + ".vectors", of.bytes);
  StepOp none;
  none.ops = op.ops;
  Launch& made = launch(
      none, of.kernel, dim(ceil_div(tokens, of.tile) * of.tile, op.parts.norm.kind == Ref::Kind::None ? of.parts : 1),
      dim(of.threads), {whole(buffer, Access::Write), in(x), in(op.parts.norm), op.parts.epsilon, int64_t(tokens)});
  made.template_arguments = of.template_arguments;
  if (!of.file.empty()) made.includes = {of.file};
  made.shared_bytes = uint32_t(of.shared_bytes);
  vectors_.push_back({x, op.parts.norm, op.parts.epsilon, of, buffer});
  return whole(buffer, Access::Read);
}

}  // namespace lane
