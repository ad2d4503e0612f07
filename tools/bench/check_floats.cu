// Checks the products of float weights and several tokens: the batched ones against the streamed products of each token
// alone, bit for bit, those on tensor cores against those within the error of their words. Then times the products of
// whole steps of 0.5B and 1B shapes: see README.md. Exit status 1 if anything is wrong.
#include "ops/batched_product.cuh"
#include "ops/float_vectors.cuh"
#include "ops/split_vectors.cuh"
#include "ops/tile_kernels.cuh"
#include "products.cuh"

namespace bench {

constexpr float kEpsilon = 1e-6f;
constexpr int kFloats = kFloatActivations;

enum class Kind { Batched, Mma, Wide };
constexpr const char* kNames[] = {"batched", "mma", "wide"};

/// Vectors of `tokens` tokens, and how the products take them.
struct Tokens {
  int count;
  const float *x, *norm = nullptr;
  uint8_t* made;
};

template <int Columns>
size_t vectors_bytes(int tokens) {
  return std::max(float_vectors_bytes(Columns, tokens), split_vectors_bytes(Columns, tokens));
}

template <class L, int Columns, int Matrices>
void enqueue_vectors(cudaStream_t stream, const Tokens& t, Kind kind) {
  const int tile = kind == Kind::Batched ? kTokenGroup : kind == Kind::Mma ? mma_vector_tile(t.count) : kWideTokens;
  const int blocks = (t.count + tile - 1) / tile * tile;
  const int shared = streamed_vector_bytes(kFloats, slices(Columns).full) * slices(Columns).count;
  const auto kernel = kind == Kind::Batched ? float_vectors<L, Columns, Matrices> : split_vectors<L, Columns, Matrices>;
  BENCH_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  BENCH_CHECK(launch_dependent(stream, static_cast<unsigned>(blocks),
                               static_cast<unsigned>(32 * streamed_warps(Columns, Matrices == 2)),
                               static_cast<size_t>(shared), kernel, t.made, t.x, t.norm, kEpsilon, t.count));
}

/// A kernel with its geometry.
template <class Kernel>
struct Shared {
  Kernel kernel;
  dim3 grid;
  int threads, shared_bytes;
};
template <class Kernel, class Geometry>
Shared<Kernel> shared_of(Kernel kernel, const Geometry& g) {
  return {kernel, dim3(static_cast<unsigned>(g.grid_x), static_cast<unsigned>(g.grid_y)), g.threads, g.shared_bytes};
}
template <class Kernel, class... Arguments>
void enqueue(cudaStream_t stream, const Chip& chip, const Shared<Kernel>& s, Arguments... arguments) {
  prepare(s.kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, s.grid, static_cast<unsigned>(s.threads), static_cast<size_t>(s.shared_bytes),
                               s.kernel, arguments...));
}

template <class L, int Columns>
void enqueue_shared(cudaStream_t stream, const Chip& chip, Kind kind, float* out, const uint8_t* weights, int rows,
                    const Tokens& t, const float* bias = nullptr, const float* residual = nullptr) {
  const WideGeometry wide = wide_geometry(rows, t.count, false, chip.multiprocessors);
  const MmaGeometry mma = mma_geometry(rows, t.count, false, chip.multiprocessors);
  const BatchedGeometry g =
      batched_geometry(Columns, L::kBytes256, rows, t.count, false, chip.multiprocessors, chip.shared_limit);
  const auto on_tensor_cores =
      kind == Kind::Wide ? shared_of(wide_kernel<L, Columns>(wide), wide) : shared_of(mma_kernel<L, Columns>(mma), mma);
  if (kind != Kind::Batched)
    return enqueue(stream, chip, on_tensor_cores, out, weights, t.made, bias, residual, rows, t.count);
  enqueue(stream, chip, shared_of(batched_product<L, Columns>, g), out, weights, t.made, bias, residual, rows, t.count,
          g.ring);
}

template <class L, int Columns>
void enqueue_shared_gated(cudaStream_t stream, const Chip& chip, Kind kind, float* out, const uint8_t* gate,
                          const uint8_t* up, int rows, const Tokens& t, int gelu) {
  const WideGeometry wide = wide_geometry(rows, t.count, true, chip.multiprocessors);
  const MmaGeometry mma = mma_geometry(rows, t.count, true, chip.multiprocessors);
  const BatchedGeometry g =
      batched_geometry(Columns, L::kBytes256, rows, t.count, true, chip.multiprocessors, chip.shared_limit);
  const auto on_tensor_cores = kind == Kind::Wide ? shared_of(wide_gated_kernel<L, Columns>(wide), wide)
                                                  : shared_of(mma_gated_kernel<L, Columns>(mma), mma);
  if (kind == Kind::Batched)
    enqueue(stream, chip, shared_of(batched_gated_product<L, Columns>, g), out, gate, up, t.made, gelu, rows, t.count,
            g.ring);
  else
    enqueue(stream, chip, on_tensor_cores, out, gate, up, t.made, gelu, rows, t.count);
}

int failures = 0;

/// Batched: the same bits. Others: within `bound` of the root of the results' mean square.
void report(const char* what, std::string_view format, Kind kind, int columns, int tokens, double bound,
            const Array<float>& got, const Array<float>& expected) {
  const auto a = got.read(), b = expected.read();
  size_t wrong = 0;
  double worst = 0, squares = 0;
  for (size_t i = 0; i < a.size(); i++) {
    wrong += memcmp(&a[i], &b[i], 4) != 0 || std::isnan(a[i]);
    squares += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    worst = std::max(worst, std::isnan(a[i]) ? 1e30 : std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  worst /= std::sqrt(squares / static_cast<double>(a.size()));
  const bool failed = kind == Kind::Batched ? wrong != 0 : !(worst <= bound);
  printf("%-7s %-7s %.*s, %5d columns, %3d tokens: %zu of %zu differ, by up to %.2e%s\n",
         kNames[static_cast<int>(kind)], what, static_cast<int>(format.size()), format.data(), columns, tokens, wrong,
         a.size(), worst, failed ? " WRONG" : "");
  failures += failed;
}

constexpr double kBound = 1e-4;  // most of it what the tensor cores drop; of two words, 4e-6 or less

template <class L, int Columns>
void check_product(Kind kind, int rows, int tokens, bool normed) {
  const Chip chip;
  const Noise<L> m(rows, Columns, 7);
  const auto elements = static_cast<size_t>(rows) * static_cast<size_t>(tokens);
  const Array<float> x(normal_values(static_cast<size_t>(Columns) * static_cast<size_t>(tokens), 1));
  const Array<float> norm(normal_values(Columns, 2)), bias(normal_values(static_cast<size_t>(rows), 3));
  const Array<float> residual(normal_values(elements, 4));
  const Array<uint8_t> made(vectors_bytes<Columns>(tokens));
  Array<float> alone(elements), together(elements);
  const Tokens t{tokens, x.data(), normed ? norm.data() : nullptr, made.data()};
  for (int i = 0; i < tokens; i++)
    enqueue_product<L, Columns, kFloats>(nullptr, chip, alone.data() + i * rows, m.repacked.data(), rows,
                                         {x.data() + i * Columns, t.norm, kEpsilon}, bias.data(),
                                         residual.data() + i * rows);
  enqueue_vectors<L, Columns, 1>(nullptr, t, kind);
  enqueue_shared<L, Columns>(nullptr, chip, kind, together.data(), m.repacked.data(), rows, t, bias.data(),
                             residual.data());
  BENCH_CHECK(cudaDeviceSynchronize());
  report("product", lane::format(kFormat<L>).name, kind, Columns, tokens, kBound, together, alone);
}

template <class L, int Columns>
void check_gated(Kind kind, int rows, int tokens, int gelu) {
  const Chip chip;
  const Noise<L> gate(rows, Columns, 7), up(rows, Columns, 8);
  const auto elements = static_cast<size_t>(rows) * static_cast<size_t>(tokens);
  const Array<float> x(normal_values(static_cast<size_t>(Columns) * static_cast<size_t>(tokens), 1));
  const Array<float> norm(normal_values(Columns, 2));
  const Array<uint8_t> made(vectors_bytes<Columns>(tokens));
  Array<float> alone(elements), together(elements);
  const Tokens t{tokens, x.data(), norm.data(), made.data()};
  for (int i = 0; i < tokens; i++)
    enqueue_gated<L, Columns, kFloats>(nullptr, chip, alone.data() + i * rows, gate.repacked.data(), up.repacked.data(),
                                       rows, {x.data() + i * Columns, t.norm, kEpsilon}, gelu);
  enqueue_vectors<L, Columns, 2>(nullptr, t, kind);
  enqueue_shared_gated<L, Columns>(nullptr, chip, kind, together.data(), gate.repacked.data(), up.repacked.data(), rows,
                                   t, gelu);
  BENCH_CHECK(cudaDeviceSynchronize());
  report("gated", lane::format(kFormat<L>).name, kind, Columns, tokens, 4 * kBound, together, alone);
}

/// A model's products: a layer's matrices once for each layer, the head's once.
template <class L, int Width, int Inner>
struct Model {
  const char* name;
  int layers, kv_rows, vocabulary;

  void time() const {
    const ModelOfNoise<L, L, L, L, Width, Inner> model(layers, kv_rows, vocabulary);
    for (const int tokens : {2, 8, 16, 32, 64}) time_step(model, tokens, Kind::Batched);
    for (const Kind kind : {Kind::Mma, Kind::Wide})
      for (const int tokens : {16, 32, 64, 128, 512}) time_step(model, tokens, kind);
  }

  /// Batched: with the head for all tokens; on tensor cores: for the last.
  void time_step(const ModelOfNoise<L, L, L, L, Width, Inner>& model, int tokens, Kind kind) const {
    const auto n = static_cast<size_t>(tokens);
    const Array<float> x(normal_values(n * Width, 1)), wide(n * Inner), q(n * Width), k(n * Width);
    const Array<float> norm(normal_values(Width, 2)), logits(n * static_cast<size_t>(vocabulary));
    BENCH_CHECK(cudaMemset(wide.data(), 0, n * Inner * 4));
    const Array<uint8_t> narrow(vectors_bytes<Width>(tokens)), inner_vectors(vectors_bytes<Inner>(tokens));
    const Tokens in{tokens, x.data(), norm.data(), narrow.data()};
    const Tokens inner{tokens, wide.data(), nullptr, inner_vectors.data()};
    const Chip chip;
    cudaStream_t stream;
    BENCH_CHECK(cudaStreamCreate(&stream));
    const Timing timing = time_graph(stream, 11, [&] {
      for (const auto& l : model.layers) {
        enqueue_vectors<L, Width, 1>(stream, in, kind);
        enqueue_shared<L, Width>(stream, chip, kind, q.data(), l->q.repacked.data(), Width, in);
        enqueue_shared<L, Width>(stream, chip, kind, k.data(), l->k.repacked.data(), kv_rows, in);
        enqueue_shared<L, Width>(stream, chip, kind, k.data(), l->v.repacked.data(), kv_rows, in);
        enqueue_vectors<L, Width, 1>(stream, in, kind);
        enqueue_shared<L, Width>(stream, chip, kind, q.data(), l->o.repacked.data(), Width, in, nullptr, x.data());
        enqueue_vectors<L, Width, 2>(stream, in, kind);
        enqueue_shared_gated<L, Width>(stream, chip, kind, wide.data(), l->gate.repacked.data(), l->up.repacked.data(),
                                       Inner, in, 0);
        enqueue_vectors<L, Inner, 1>(stream, inner, kind);
        enqueue_shared<L, Inner>(stream, chip, kind, q.data(), l->down.repacked.data(), Width, inner);
      }
      if (kind != Kind::Batched) {
        enqueue_product<L, Width, kFloats>(stream, chip, logits.data(), model.head.repacked.data(), vocabulary,
                                           {x.data(), norm.data(), kEpsilon});
      } else {
        enqueue_vectors<L, Width, 1>(stream, in, kind);
        enqueue_shared<L, Width>(stream, chip, kind, logits.data(), model.head.repacked.data(), vocabulary, in);
      }
    });
    printf("%s, %-7s %3d tokens: %8.1f us (spread %.1f), %8.0f tok/s\n", name, kNames[static_cast<int>(kind)], tokens,
           static_cast<double>(timing.median_us), static_cast<double>(timing.spread_us),
           1e6 * tokens / static_cast<double>(timing.median_us));
    fflush(stdout);
    BENCH_CHECK(cudaStreamDestroy(stream));
  }
};

void check_all() {
  for (const Kind kind : {Kind::Batched, Kind::Mma, Kind::Wide}) {
    check_product<RepackedBF16, 2048>(kind, 1000, 8, true), check_product<RepackedBF16, 2048>(kind, 17001, 13, true);
    check_product<RepackedF16, 896>(kind, 9000, 70, true), check_product<RepackedF16, 4864>(kind, 896, 512, false);
    check_product<RepackedBF16, 8192>(kind, 2048, 130, false);
    check_gated<RepackedBF16, 2048>(kind, 8190, 77, 0), check_gated<RepackedF16, 896>(kind, 4864, 16, 1);
  }
}

}  // namespace bench

int main() {
  using namespace bench;
  check_all();
  Model<RepackedF16, 896, 4864>{"0.5B F16", 24, 128, 151936}.time();
  Model<RepackedBF16, 2048, 8192>{"1B BF16", 16, 512, 128256}.time();
  printf(failures ? "%d WRONG\n" : "all right\n", failures);
  return failures ? 1 : 0;
}
