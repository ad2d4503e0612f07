// Checks the products of several tokens against the streamed products of each, bit for bit, those of chunks within the
// error of int8x2 activations, and times the products of whole steps of 0.5B and 8B shapes: see README.md. Exit status
// 1 if any bit differs or an error is larger.
#include "ops/chunk_kernels.cuh"
#include "ops/half_vectors.cuh"
#include "ops/quantize_vectors.cuh"
#include "ops/tiled_product.cuh"
#include "products.cuh"

namespace bench {

constexpr int kWords = kTwoWords;
constexpr float kEpsilon = 1e-6f;

/// Vectors of `tokens` tokens, and their quantized form.
struct Tokens {
  int count;
  const float *x, *norm = nullptr;
  uint8_t* quantized;
};

template <class L, int Columns>
void enqueue_vectors(cudaStream_t stream, const Tokens& t, bool gated) {
  const int blocks = (t.count + kTokenGroup - 1) / kTokenGroup * kTokenGroup;
  const int shared = streamed_vector_bytes(kWords, slices(Columns).full) * slices(Columns).count;
  const auto kernel = gated ? quantize_vectors<L, Columns, kWords, 2> : quantize_vectors<L, Columns, kWords, 1>;
  BENCH_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const int parts = t.norm ? 1 : quantize_parts(Columns, t.count, Chip{}.multiprocessors);
  BENCH_CHECK(launch_dependent(stream, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)),
                               static_cast<unsigned>(32 * streamed_warps(Columns, gated)), static_cast<size_t>(shared),
                               kernel, t.quantized, t.x, t.norm, kEpsilon, t.count));
}

/// Where blocks that share rows leave their sums: one for all products, since launches follow each other.
inline float* partial_sums(const TiledGeometry& g) {
  static const Array<float> sums(4 << 20);
  if (g.partial_floats > sums.size()) exit(1);
  return sums.data();
}

template <class L, int Columns>
void enqueue_tiled(cudaStream_t stream, const Chip& chip, float* out, const uint8_t* weights, int rows, const Tokens& t,
                   const float* bias = nullptr, const float* residual = nullptr) {
  const TiledGeometry g =
      tiled_geometry(Columns, kTiledFormat<L>, rows, t.count, false, chip.multiprocessors, chip.shared_limit);
  const auto kernel =
      g.tokens == 32 ? tiled_product<L, Columns, kWords, 32, 2>
      : g.tokens == 16
          ? (g.tiles == 1 ? tiled_product<L, Columns, kWords, 16, 1> : tiled_product<L, Columns, kWords, 16, 2>)
      : g.tiles == 1 ? tiled_product<L, Columns, kWords, 8, 1>
                     : tiled_product<L, Columns, kWords, 8, 2>;
  prepare(kernel, chip.shared_limit);
  auto* counters = reinterpret_cast<int*>(t.quantized + tiled_counters_offset(Columns, kWords, t.count));
  BENCH_CHECK(launch_dependent(
      stream, dim3(static_cast<unsigned>(g.grid_x), static_cast<unsigned>(g.grid_y), static_cast<unsigned>(g.grid_z)),
      static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes), kernel, out, weights, t.quantized, bias,
      residual, rows, t.count, g.ring, partial_sums(g), counters));
}

template <class L, int Columns>
void enqueue_tiled_gated(cudaStream_t stream, const Chip& chip, float* out, const uint8_t* gate, const uint8_t* up,
                         int rows, const Tokens& t, int gelu) {
  const TiledGeometry g =
      tiled_geometry(Columns, kTiledFormat<L>, rows, t.count, true, chip.multiprocessors, chip.shared_limit);
  const auto kernel = g.tokens == 32   ? tiled_gated_product<L, Columns, kWords, 32, 2>
                      : g.tokens == 16 ? tiled_gated_product<L, Columns, kWords, 16, 2>
                                       : tiled_gated_product<L, Columns, kWords, 8, 2>;
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, dim3(static_cast<unsigned>(g.grid_x), static_cast<unsigned>(g.grid_y)),
                               static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes), kernel, out, gate,
                               up, t.quantized, gelu, rows, t.count, g.ring));
}

template <int Columns>
void enqueue_halves(cudaStream_t stream, const Tokens& t) {
  const int blocks = (t.count + kChunkTokens - 1) / kChunkTokens * kChunkTokens;
  BENCH_CHECK(launch_dependent(stream, static_cast<unsigned>(blocks), half_vectors_threads(Columns), 0,
                               half_vectors<Columns, kWords>, t.quantized, t.x, t.norm, kEpsilon, t.count));
}

template <class L, int Columns>
void enqueue_chunk(cudaStream_t stream, const Chip& chip, float* out, const uint8_t* weights, int rows, const Tokens& t,
                   const float* bias = nullptr, const float* residual = nullptr) {
  const ChunkMatrix shape{rows, L::kBytes256};
  const ChunkGeometry g = chunk_geometry(&shape, 1, Columns, t.count, false, kWords, chip.multiprocessors);
  const auto kernel = chunk_kernel_of(g, ChunkProduct<L, Columns, kWords>{});
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, dim3(static_cast<unsigned>(g.grid_x), static_cast<unsigned>(g.grid_y)),
                               static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes), kernel, out,
                               weights, t.quantized, bias, residual, rows, t.count));
}

/// Queries, keys and values.
template <class L, class Value, int Columns>
void enqueue_chunks(cudaStream_t stream, const Chip& chip, const ProductOf (&p)[3], const Tokens& t) {
  const ChunkMatrix shapes[] = {{p[0].rows, L::kBytes256}, {p[1].rows, L::kBytes256}, {p[2].rows, Value::kBytes256}};
  const ChunkGeometry g = chunk_geometry(shapes, 3, Columns, t.count, false, kWords, chip.multiprocessors);
  const auto kernel = chunk_kernel_of(g, ChunkProducts<L, L, Value, Columns, kWords>{});
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, dim3(static_cast<unsigned>(g.grid_x), static_cast<unsigned>(g.grid_y)),
                               static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes), kernel, p[0].out,
                               p[1].out, p[2].out, p[0].weights, p[1].weights, p[2].weights, t.quantized, p[0].bias,
                               p[1].bias, p[2].bias, p[0].rows, p[1].rows, p[2].rows, t.count));
}

template <class L, int Columns>
void enqueue_chunk_gated(cudaStream_t stream, const Chip& chip, float* out, const uint8_t* gate, const uint8_t* up,
                         int rows, const Tokens& t, int gelu) {
  const ChunkMatrix shape{rows, L::kBytes256};
  const ChunkGeometry g = chunk_geometry(&shape, 1, Columns, t.count, true, kWords, chip.multiprocessors);
  const auto kernel = chunk_kernel_of(g, ChunkGatedProduct<L, Columns, kWords>{});
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, dim3(static_cast<unsigned>(g.grid_x), static_cast<unsigned>(g.grid_y)),
                               static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes), kernel, out, gate,
                               up, t.quantized, gelu, rows, t.count));
}

int failures = 0;
void report(const char* what, std::string_view format, int columns, int tokens, const Array<float>& got,
            const Array<float>& expected) {
  const auto a = got.read(), b = expected.read();
  size_t wrong = 0;
  for (size_t i = 0; i < a.size(); i++) wrong += memcmp(&a[i], &b[i], 4) != 0 || std::isnan(a[i]);
  printf("%-7s %.*s, %5d columns, %3d tokens: %zu of %zu differ%s\n", what, static_cast<int>(format.size()),
         format.data(), columns, tokens, wrong, a.size(), wrong ? " WRONG" : "");
  failures += wrong != 0;
}

/// The norm of the difference over the norm.
void report_error(const char* what, std::string_view format, int columns, int tokens, const Array<float>& got,
                  const Array<float>& expected) {
  constexpr double kBound = 1e-4;
  const auto a = got.read(), b = expected.read();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); i++) difference += std::pow(double(a[i]) - b[i], 2), norm += std::pow(b[i], 2);
  const double error = std::sqrt(difference / norm);
  const bool wrong = !(error <= kBound);
  printf("%-7s %.*s, %5d columns, %3d tokens: error %.1e%s\n", what, static_cast<int>(format.size()), format.data(),
         columns, tokens, error, wrong ? " WRONG" : "");
  failures += wrong;
}

template <class L, int Columns>
void check_product(int rows, int tokens, bool normed) {
  const Chip chip;
  const Noise<L> m(rows, Columns, 7);
  const auto elements = static_cast<size_t>(rows) * static_cast<size_t>(tokens);
  const Array<float> x(normal_values(static_cast<size_t>(Columns) * static_cast<size_t>(tokens), 1));
  const Array<float> norm(normal_values(Columns, 2)), bias(normal_values(static_cast<size_t>(rows), 3));
  const Array<float> residual(normal_values(elements, 4));
  const Array<uint8_t> quantized(quantized_vectors_bytes(Columns, kWords, tokens));
  Array<float> alone(elements), together(elements);
  const Tokens t{tokens, x.data(), normed ? norm.data() : nullptr, quantized.data()};
  for (int i = 0; i < tokens; i++)
    enqueue_product<L, Columns, kWords>(nullptr, chip, alone.data() + i * rows, m.repacked.data(), rows,
                                        {x.data() + i * Columns, t.norm, kEpsilon}, bias.data(),
                                        residual.data() + i * rows);
  enqueue_vectors<L, Columns>(nullptr, t, false);
  enqueue_tiled<L, Columns>(nullptr, chip, together.data(), m.repacked.data(), rows, t, bias.data(), residual.data());
  BENCH_CHECK(cudaDeviceSynchronize());
  report("product", lane::format(kFormat<L>).name, Columns, tokens, together, alone);
  const Array<uint8_t> halves(half_vectors_bytes(Columns, kWords, tokens));
  const Tokens h{tokens, x.data(), t.norm, halves.data()};
  together.poison();
  enqueue_halves<Columns>(nullptr, h);
  enqueue_chunk<L, Columns>(nullptr, chip, together.data(), m.repacked.data(), rows, h, bias.data(), residual.data());
  BENCH_CHECK(cudaDeviceSynchronize());
  report_error("chunk", lane::format(kFormat<L>).name, Columns, tokens, together, alone);
}

template <class L, int Columns>
void check_gated(int rows, int tokens, int gelu) {
  const Chip chip;
  const Noise<L> gate(rows, Columns, 7), up(rows, Columns, 8);
  const auto elements = static_cast<size_t>(rows) * static_cast<size_t>(tokens);
  const Array<float> x(normal_values(static_cast<size_t>(Columns) * static_cast<size_t>(tokens), 1));
  const Array<float> norm(normal_values(Columns, 2));
  const Array<uint8_t> quantized(quantized_vectors_bytes(Columns, kWords, tokens));
  Array<float> alone(elements), together(elements);
  const Tokens t{tokens, x.data(), norm.data(), quantized.data()};
  for (int i = 0; i < tokens; i++)
    enqueue_gated<L, Columns, kWords>(nullptr, chip, alone.data() + i * rows, gate.repacked.data(), up.repacked.data(),
                                      rows, {x.data() + i * Columns, t.norm, kEpsilon}, gelu);
  enqueue_vectors<L, Columns>(nullptr, t, true);
  enqueue_tiled_gated<L, Columns>(nullptr, chip, together.data(), gate.repacked.data(), up.repacked.data(), rows, t,
                                  gelu);
  BENCH_CHECK(cudaDeviceSynchronize());
  report("gated", lane::format(kFormat<L>).name, Columns, tokens, together, alone);
  const Array<uint8_t> halves(half_vectors_bytes(Columns, kWords, tokens));
  const Tokens h{tokens, x.data(), norm.data(), halves.data()};
  together.poison();
  enqueue_halves<Columns>(nullptr, h);
  enqueue_chunk_gated<L, Columns>(nullptr, chip, together.data(), gate.repacked.data(), up.repacked.data(), rows, h,
                                  gelu);
  BENCH_CHECK(cudaDeviceSynchronize());
  report_error("chunk", lane::format(kFormat<L>).name, Columns, tokens, together, alone);
}

/// A model's products: a layer's matrices once for each layer, the head's once. Qkv, Gate, Down and Head are layouts.
template <class Qkv, class Value, class Down, class Head, int Width, int Inner>
struct Model {
  const char* name;
  int layers, kv_rows, vocabulary;

  void time() const {
    const ModelOfNoise<Qkv, Value, Down, Head, Width, Inner> model(layers, kv_rows, vocabulary);
    for (int tokens : {8, 16, 32}) time_tokens<false>(model, tokens);
    for (int tokens : {32, 64, 128, 512, 2048}) time_tokens<true>(model, tokens);
  }

  /// `Chunk`: with the products of chunks.
  template <bool Chunk, class Noises>
  void time_tokens(const Noises& model, int tokens) const {
    const auto n = static_cast<size_t>(tokens);
    const Array<float> x(normal_values(n * Width, 1)), wide(n * Inner), q(n * Width), k(n * Width), v(n * Width);
    const Array<float> norm(normal_values(Width, 2)), logits(16 * static_cast<size_t>(vocabulary));
    BENCH_CHECK(cudaMemset(wide.data(), 0, n * Inner * 4));
    const Array<uint8_t> narrow_vectors(2 * quantized_vectors_bytes(Width, kWords, tokens + kChunkTokens)),
        other_vectors(2 * quantized_vectors_bytes(Width, kWords, tokens)),
        wide_vectors(2 * quantized_vectors_bytes(Inner, kWords, tokens + kChunkTokens));
    const Tokens in{tokens, x.data(), norm.data(), narrow_vectors.data()};
    const Tokens in_value{tokens, x.data(), norm.data(), other_vectors.data()};
    const Tokens inner{tokens, wide.data(), nullptr, wide_vectors.data()};
    const Chip chip;
    cudaStream_t stream;
    BENCH_CHECK(cudaStreamCreate(&stream));
    const bool prefill = tokens > 16;
    const Tokens last{prefill ? 1 : tokens, x.data(), norm.data(), narrow_vectors.data()};
    const Timing timing = time_graph(stream, prefill ? 7 : 21, [&] {
      for (const auto& l : model.layers) {
        if constexpr (Chunk) {
          enqueue_halves<Width>(stream, in);
          enqueue_chunks<Qkv, Value, Width>(stream, chip,
                                            {{q.data(), l->q.repacked.data(), Width},
                                             {k.data(), l->k.repacked.data(), kv_rows},
                                             {v.data(), l->v.repacked.data(), kv_rows}},
                                            in);
          enqueue_halves<Width>(stream, in);
          enqueue_chunk<Qkv, Width>(stream, chip, q.data(), l->o.repacked.data(), Width, in, nullptr, x.data());
          enqueue_halves<Width>(stream, in);
          enqueue_chunk_gated<Qkv, Width>(stream, chip, wide.data(), l->gate.repacked.data(), l->up.repacked.data(),
                                          Inner, in, 0);
          enqueue_halves<Inner>(stream, inner);
          enqueue_chunk<Down, Inner>(stream, chip, q.data(), l->down.repacked.data(), Width, inner);
        } else {
          enqueue_vectors<Qkv, Width>(stream, in, false);
          enqueue_tiled<Qkv, Width>(stream, chip, q.data(), l->q.repacked.data(), Width, in);
          enqueue_tiled<Qkv, Width>(stream, chip, k.data(), l->k.repacked.data(), kv_rows, in);
          enqueue_vectors<Value, Width>(stream, in_value, false);
          enqueue_tiled<Value, Width>(stream, chip, k.data(), l->v.repacked.data(), kv_rows, in_value);
          enqueue_vectors<Qkv, Width>(stream, in, false);
          enqueue_tiled<Qkv, Width>(stream, chip, q.data(), l->o.repacked.data(), Width, in, nullptr, x.data());
          enqueue_vectors<Qkv, Width>(stream, in, true);
          enqueue_tiled_gated<Qkv, Width>(stream, chip, wide.data(), l->gate.repacked.data(), l->up.repacked.data(),
                                          Inner, in, 0);
          enqueue_vectors<Down, Inner>(stream, inner, false);
          enqueue_tiled<Down, Inner>(stream, chip, q.data(), l->down.repacked.data(), Width, inner);
        }
      }
      enqueue_vectors<Head, Width>(stream, last, false);
      enqueue_tiled<Head, Width>(stream, chip, logits.data(), model.head.repacked.data(), vocabulary, last);
    });
    printf("%s, %4d tokens%s: %8.1f us (spread %.1f), %8.0f tok/s\n", name, tokens, Chunk ? ", chunk" : "",
           static_cast<double>(timing.median_us), static_cast<double>(timing.spread_us),
           1e6 * tokens / static_cast<double>(timing.median_us));
    fflush(stdout);
    BENCH_CHECK(cudaStreamDestroy(stream));
  }
};

void check_all() {
  check_product<RepackedQ4_K, 4096>(1000, 8, true), check_product<RepackedQ4_K, 4096>(17000, 13, true);
  check_product<RepackedQ6_K, 14336>(530, 16, false), check_product<RepackedQ5_0, 896>(1536, 3, true);
  check_product<RepackedQ8_0, 896>(9000, 19, true), check_product<RepackedQ6_K, 4864>(896, 512, false);
  check_gated<RepackedQ4_K, 4096>(1000, 8, 0), check_gated<RepackedQ5_0, 896>(4864, 16, 1);
  check_gated<RepackedQ5_0, 896>(4864, 77, 0);
}

}  // namespace bench

int main() {
  using namespace bench;
  check_all();
  Model<RepackedQ5_0, RepackedQ8_0, RepackedQ6_K, RepackedQ8_0, 896, 4864>{"0.5B", 24, 128, 151936}.time();
  Model<RepackedQ4_K, RepackedQ6_K, RepackedQ6_K, RepackedQ6_K, 4096, 14336>{"8B", 32, 1024, 128256}.time();
  printf(failures ? "%d WRONG\n" : "all right\n", failures);
  return failures ? 1 : 0;
}
