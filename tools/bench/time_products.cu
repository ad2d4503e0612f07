// Times the products of simulated decode steps on a GPU: see README.md. A layer is four launches: norm and q, k, v; o
// with the residual, reading q (attention itself is left out); norm and gate, up; down with the residual. Then norm and
// the head.
#include "products.cuh"

namespace bench {

/// A step's arrays: matrices of noise, vectors, and the launches in their order.
class Step {
 public:
  Step(cudaStream_t s, Chip c) : stream(s), chip(c) {}

  template <class L>
  const uint8_t* matrix(int rows, int columns) {
    const lane::Format& f = lane::format(kFormat<L>);
    const size_t elements = static_cast<size_t>(rows) * static_cast<size_t>(columns);
    const Array<uint8_t> stored(f.row_bytes(elements), false);
    fill_with_noise(f, stored.data(), elements, static_cast<uint32_t>(matrices_.size()), stream);
    matrices_.emplace_back(repacked_bytes(L::kBytes256, static_cast<size_t>(rows), columns), false);
    bytes += matrices_.back().size();
    enqueue_repack<L>(stream, matrices_.back().data(), stored.data(), 0, rows, rows, columns);
    BENCH_CHECK(cudaStreamSynchronize(stream));
    return matrices_.back().data();
  }
  float* vector(int n) {
    std::mt19937 random(static_cast<unsigned>(n));
    std::normal_distribution<float> normal;
    std::vector<float> v(static_cast<size_t>(n));
    for (auto& x : v) x = normal(random);
    vectors_.emplace_back(v);
    return vectors_.back().data();
  }
  void add(std::function<void()> launch) { launches.push_back(std::move(launch)); }

  cudaStream_t stream;
  Chip chip;
  size_t bytes = 0;
  std::vector<std::function<void()>> launches;

 private:
  std::vector<Array<uint8_t>> matrices_;
  std::vector<Array<float>> vectors_;
};

struct Shape {
  const char* name;
  int width, inner, kv, vocabulary, layers;
  double floor, peer;  // tok/s: the floor program's, four launches a layer; llama.cpp's, with attention
};

/// F: most matrices; Some layers have v and down in larger formats, as Q4_K_M files do: V and DownMore.
template <int Width, int Inner, int Words, class F, class V, class Down, class DownMore, class Head>
void time_step(const Shape& shape, cudaStream_t stream, Chip chip) {
  Step step(stream, chip);
  const int kv = shape.kv;
  const float* norm = step.vector(Width);
  float* x = step.vector(Width);
  for (int i = 0; i < shape.layers; i++) {
    const int eighth = shape.layers / 8;
    const bool more = i < eighth || i >= 7 * eighth || (i - eighth) % 3 == 2;
    float *q = step.vector(Width), *k = step.vector(kv), *v = step.vector(kv), *mid = step.vector(Width),
          *inner = step.vector(Inner), *next = step.vector(Width);
    const uint8_t *wq = step.matrix<F>(Width, Width), *wk = step.matrix<F>(kv, Width);
    if (more) {
      const uint8_t* wv = step.matrix<V>(kv, Width);
      step.add([=] {
        enqueue_products<F, F, V, Width, Words>(stream, chip, {{q, wq, Width}, {k, wk, kv}, {v, wv, kv}}, {x, norm});
      });
    } else {
      const uint8_t* wv = step.matrix<F>(kv, Width);
      step.add([=] {
        enqueue_products<F, F, F, Width, Words>(stream, chip, {{q, wq, Width}, {k, wk, kv}, {v, wv, kv}}, {x, norm});
      });
    }
    const uint8_t *wo = step.matrix<F>(Width, Width), *gate = step.matrix<F>(Inner, Width),
                  *up = step.matrix<F>(Inner, Width);
    step.add([=] { enqueue_product<F, Width, Words>(stream, chip, mid, wo, Width, {q}, nullptr, x); });
    step.add([=] { enqueue_gated<F, Width, Words>(stream, chip, inner, gate, up, Inner, {mid, norm}, 0); });
    if (more) {
      const uint8_t* down = step.matrix<DownMore>(Width, Inner);
      step.add(
          [=] { enqueue_product<DownMore, Inner, Words>(stream, chip, next, down, Width, {inner}, nullptr, mid); });
    } else {
      const uint8_t* down = step.matrix<Down>(Width, Inner);
      step.add([=] { enqueue_product<Down, Inner, Words>(stream, chip, next, down, Width, {inner}, nullptr, mid); });
    }
    x = next;
  }
  float* logits = step.vector(shape.vocabulary);
  const uint8_t* head = step.matrix<Head>(shape.vocabulary, Width);
  step.add([=, &shape] {
    enqueue_product<Head, Width, Words>(stream, chip, logits, head, shape.vocabulary, {x, norm});
  });

  const Timing t = time_graph(stream, 31, [&] {
    for (auto& l : step.launches) l();
  });
  std::vector<float> in_graph(static_cast<size_t>(shape.vocabulary)), alone(in_graph.size());
  auto read = [&](std::vector<float>& v) {
    BENCH_CHECK(cudaMemcpy(v.data(), logits, 4 * v.size(), cudaMemcpyDeviceToHost));
  };
  read(in_graph);
  for (auto& l : step.launches) l(), BENCH_CHECK(cudaStreamSynchronize(stream));
  read(alone);
  bool finite = true;
  for (float v : alone) finite &= std::isfinite(v);
  const double limit = static_cast<double>(step.bytes) / 4.3e6;
  printf(
      "%-5s words %d: %4.0f MB, %zu launches, %.1f us (+-%.1f) = %.0f tok/s; %.0f GB/s, %.0f%% of 4.3 TB/s, %.2f of "
      "the floor program's, "
      "%.2f us a launch over the bytes%s%s\n",
      shape.name, Words, static_cast<double>(step.bytes) * 1e-6, step.launches.size(), t.median_us, t.spread_us,
      1e6 / t.median_us, static_cast<double>(step.bytes) / t.median_us * 1e-3, 100 * limit / t.median_us,
      1e6 / t.median_us / shape.floor, (t.median_us - limit) / static_cast<double>(step.launches.size()),
      finite ? "" : " NOT FINITE",
      memcmp(in_graph.data(), alone.data(), 4 * alone.size()) ? " GRAPH AND SINGLE LAUNCHES DIFFER" : "");
}

template <int Words>
void time_all(cudaStream_t s, Chip chip) {
  time_step<896, 4864, Words, RepackedQ5_0, RepackedQ8_0, RepackedQ4_K, RepackedQ6_K, RepackedQ8_0>(
      {"0.5B", 896, 4864, 128, 151936, 24, 4590, 904}, s, chip);
  time_step<2048, 8192, Words, RepackedQ4_K, RepackedQ6_K, RepackedQ4_K, RepackedQ6_K, RepackedQ6_K>(
      {"1B", 2048, 8192, 512, 128256, 16, 3380, 906}, s, chip);
  time_step<4096, 14336, Words, RepackedQ4_K, RepackedQ6_K, RepackedQ4_K, RepackedQ6_K, RepackedQ6_K>(
      {"8B", 4096, 14336, 1024, 128256, 32, 748, 278}, s, chip);
}

}  // namespace bench

int main() {
  cudaDeviceProp properties;
  BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
  cudaStream_t stream;
  BENCH_CHECK(cudaStreamCreate(&stream));
  const bench::Chip chip{properties.multiProcessorCount, static_cast<int>(properties.sharedMemPerBlockOptin)};
  printf("%s, %d multiprocessors\n", properties.name, chip.multiprocessors);
  bench::time_all<2>(stream, chip);
  bench::time_all<1>(stream, chip);
}
