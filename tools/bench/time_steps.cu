// Times simulated decode steps on a GPU: see README.md. A layer is five launches: norm and q, k, v; attention with
// rotation and the caches' rows; o with the residual; norm and gate, up; down with the residual. Then norm and the
// head.
#include "ops/attention_split.cuh"
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
  uint8_t* cache(size_t halves) {
    matrices_.emplace_back(2 * halves, false);
    fill_with_noise(lane::format(lane::FormatId::BF16), matrices_.back().data(), halves, 1, stream);
    return matrices_.back().data();
  }
  int* integers(int n) {
    integers_.emplace_back(std::vector<int>(static_cast<size_t>(n)));
    return integers_.back().data();
  }
  void add(std::function<void()> launch) { launches.push_back(std::move(launch)); }

  cudaStream_t stream;
  Chip chip;
  size_t bytes = 0;
  std::vector<std::function<void()>> launches;

 private:
  std::vector<Array<uint8_t>> matrices_;
  std::vector<Array<float>> vectors_;
  std::vector<Array<int>> integers_;
};

struct Shape {
  const char* name;
  int vocabulary, layers;
  double floor;  // tok/s of the floor program, five launches a layer and no attention
};

/// The caches of a layer, as long as the deepest step asks for, and what attention needs besides.
struct Caches {
  uint8_t *keys, *values;
  float* partial;
  int *arrived, *position, *slot;
  const float* rotary;
  int splits;
};
template <int Width, int Heads>
void enqueue_attention(cudaStream_t stream, const Chip& chip, float* out, const float* q, const float* k,
                       const float* v, const Caches& c, int groups) {
  const auto g =
      attention_split_geometry(Width, Width, Heads, groups, 1, c.splits, chip.multiprocessors, chip.shared_limit);
  const auto kernel = attention_split<Width, Width, Heads>;
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, static_cast<unsigned>(g.grid), static_cast<unsigned>(g.threads),
                               static_cast<size_t>(g.shared_bytes), kernel, out, c.keys, c.values, c.partial, c.arrived,
                               q, k, v, nullptr, nullptr, 1e-6f, c.rotary, Width, 0, nullptr, c.position, c.slot, 0, 1,
                               groups, Heads, g.splits, 1.f / std::sqrt(static_cast<float>(Width)), 0, 0.f));
}

/// F: most matrices; some layers have v and down in larger formats, as Q4_K_M files do: V and DownMore.
template <int Width, int Inner, int HeadWidth, int Groups, int Words, class F, class V, class Down, class DownMore,
          class Head>
void build_step(Step& step, const Shape& shape, Caches c, int context, float* logits) {
  constexpr int kHeads = Width / HeadWidth / Groups, kKv = Groups * HeadWidth;
  const cudaStream_t stream = step.stream;
  const Chip chip = step.chip;
  const float* norm = step.vector(Width);
  float* x = step.vector(Width);
  for (int i = 0; i < shape.layers; i++) {
    const int eighth = shape.layers / 8;
    const bool more = i < eighth || i >= 7 * eighth || (i - eighth) % 3 == 2;
    float *q = step.vector(Width), *k = step.vector(kKv), *v = step.vector(kKv), *seen = step.vector(Width),
          *mid = step.vector(Width), *inner = step.vector(Inner), *next = step.vector(Width);
    const uint8_t *wq = step.matrix<F>(Width, Width), *wk = step.matrix<F>(kKv, Width);
    if (more) {
      const uint8_t* wv = step.matrix<V>(kKv, Width);
      step.add([=] {
        enqueue_products<F, F, V, Width, Words>(stream, chip, {{q, wq, Width}, {k, wk, kKv}, {v, wv, kKv}}, {x, norm});
      });
    } else {
      const uint8_t* wv = step.matrix<F>(kKv, Width);
      step.add([=] {
        enqueue_products<F, F, F, Width, Words>(stream, chip, {{q, wq, Width}, {k, wk, kKv}, {v, wv, kKv}}, {x, norm});
      });
    }
    c.keys = step.cache(static_cast<size_t>(context) * kKv), c.values = step.cache(static_cast<size_t>(context) * kKv);
    step.add([=] { enqueue_attention<HeadWidth, kHeads>(stream, chip, seen, q, k, v, c, Groups); });
    const uint8_t *wo = step.matrix<F>(Width, Width), *gate = step.matrix<F>(Inner, Width),
                  *up = step.matrix<F>(Inner, Width);
    step.add([=] { enqueue_product<F, Width, Words>(stream, chip, mid, wo, Width, {seen}, nullptr, x); });
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
  const uint8_t* head = step.matrix<Head>(shape.vocabulary, Width);
  step.add([=] { enqueue_product<Head, Width, Words>(stream, chip, logits, head, shape.vocabulary, {x, norm}); });
}

/// The logits' bits must be the same from the replayed graph and from launches one by one.
const char* compare_launches(const Step& step, const float* logits, int vocabulary) {
  std::vector<float> in_graph(static_cast<size_t>(vocabulary)), alone(in_graph.size());
  auto read = [&](std::vector<float>& v) {
    BENCH_CHECK(cudaMemcpy(v.data(), logits, 4 * v.size(), cudaMemcpyDeviceToHost));
  };
  read(in_graph);
  for (auto& l : step.launches) l(), BENCH_CHECK(cudaStreamSynchronize(step.stream));
  read(alone);
  for (float v : alone)
    if (!std::isfinite(v)) return " NOT FINITE";
  return memcmp(in_graph.data(), alone.data(), 4 * alone.size()) ? " GRAPH AND SINGLE LAUNCHES DIFFER" : "";
}

template <int Width, int Inner, int HeadWidth, int Groups, int Words, class F, class V, class Down, class DownMore,
          class Head>
void time_step(const Shape& shape, cudaStream_t stream, Chip chip, const std::vector<int>& depths) {
  Step step(stream, chip);
  const int context = *std::max_element(depths.begin(), depths.end()) + 1, heads = Width / HeadWidth;
  Caches c{};
  c.splits = (context + kSplitRows - 1) / kSplitRows;
  c.partial = step.vector(Groups * attention_split_partial_floats(c.splits, heads / Groups, HeadWidth));
  c.arrived = step.integers(Groups), c.position = step.integers(1), c.slot = step.integers(1);
  c.rotary = step.vector(context * HeadWidth);
  float* logits = step.vector(shape.vocabulary);
  build_step<Width, Inner, HeadWidth, Groups, Words, F, V, Down, DownMore, Head>(step, shape, c, context, logits);
  for (int depth : depths) {
    BENCH_CHECK(cudaMemcpy(c.position, &depth, 4, cudaMemcpyHostToDevice));
    const Timing t = time_graph(stream, 31, [&] {
      for (auto& l : step.launches) l();
    });
    const double cache_bytes = 4.0 * Groups * HeadWidth * depth * shape.layers,
                 bytes = static_cast<double>(step.bytes) + cache_bytes;
    printf(
        "%-5s words %d depth %5d splits %d: %4.0f MB, %zu launches, %.1f us (+-%.1f) = %.0f tok/s; %.0f%% of 4.3 TB/s, "
        "%.2f of the floor "
        "program's, %.2f us a launch over the bytes%s\n",
        shape.name, Words, depth, c.splits, bytes * 1e-6, step.launches.size(), t.median_us, t.spread_us,
        1e6 / t.median_us, 100 * bytes / 4.3e6 / t.median_us, 1e6 / t.median_us / shape.floor,
        (t.median_us - bytes / 4.3e6) / static_cast<double>(step.launches.size()),
        compare_launches(step, logits, shape.vocabulary));
  }
}

template <int Words>
void time_all(cudaStream_t s, Chip chip) {
  time_step<896, 4864, 64, 2, Words, RepackedQ5_0, RepackedQ8_0, RepackedQ4_K, RepackedQ6_K, RepackedQ8_0>(
      {"0.5B", 151936, 24, 3980}, s, chip, {0, 100, 1000, 4096});
  time_step<2048, 8192, 64, 8, Words, RepackedQ4_K, RepackedQ6_K, RepackedQ4_K, RepackedQ6_K, RepackedQ6_K>(
      {"1B", 128256, 16, 3190}, s, chip, {0, 100, 1000, 4096});
  time_step<4096, 14336, 128, 8, Words, RepackedQ4_K, RepackedQ6_K, RepackedQ4_K, RepackedQ6_K, RepackedQ6_K>(
      {"8B", 128256, 32, 713}, s, chip, {0, 1000, 4096, 32768});
}

}  // namespace bench

int main(int argc, char** argv) {
  cudaDeviceProp properties;
  BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
  cudaStream_t stream;
  BENCH_CHECK(cudaStreamCreate(&stream));
  const bench::Chip chip{properties.multiProcessorCount, static_cast<int>(properties.sharedMemPerBlockOptin)};
  const int words = argc > 1 ? atoi(argv[1]) : 2;
  printf("%s, %d multiprocessors\n", properties.name, chip.multiprocessors);
  if (words == 2)
    bench::time_all<2>(stream, chip);
  else
    bench::time_all<1>(stream, chip);
}
