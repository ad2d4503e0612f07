// Checks chunk attention on a GPU against plain loops in double, and times it: see README.md. Exit status 1 if anything
// is wrong.
#include "bench_device.cuh"
#include "ops/attention_chunk.cuh"

namespace bench {
using namespace LANE_NAMESPACE;

std::vector<float> random_values(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (auto& x : v) x = normal(random);
  return v;
}

/// A chunk of `rows` rows at `depth`, over random caches.
template <int Width, int ValueWidth>
struct Chunk {
  int groups, heads_per_group, rows, depth, window;
  float limit;
  std::vector<float> q, cache;  // the cache's values as halves hold them: keys, then values
  std::vector<float> sinks;
  size_t context, key_row, value_row;

  Chunk(int g, int h, int r, int d, int w, float l)
      : groups(g), heads_per_group(h), rows(r), depth(d), window(w), limit(l) {
    context = static_cast<size_t>(depth + rows), key_row = static_cast<size_t>(groups * Width),
    value_row = static_cast<size_t>(groups * ValueWidth);
    q = random_values(static_cast<size_t>(rows) * heads() * Width, 1);
    cache = random_values(context * (key_row + value_row), 2);
    for (auto& x : cache) x = __half2float(__float2half(x));
    sinks = random_values(heads(), 3);
  }
  size_t heads() const { return static_cast<size_t>(groups * heads_per_group); }
  float scale() const { return 1.f / std::sqrt(static_cast<float>(Width)); }

  /// Launches `times` times into one poisoned result; `us` gets the median time of a launch.
  std::vector<float> run(bool with_sinks, float* us = nullptr) const {
    std::vector<uint8_t> halves(2 * cache.size());
    for (size_t i = 0; i < cache.size(); i++) {
      const uint16_t bits = __half_as_ushort(__float2half(cache[i]));
      memcpy(&halves[2 * i], &bits, 2);
    }
    const Array<uint8_t> state(halves);
    const Array<float> dq(q), dsinks(sinks);
    const Array<int> pos(std::vector<int>{depth}), slot(std::vector<int>{0});
    Array<float> out(static_cast<size_t>(rows) * heads() * ValueWidth);
    const auto kernel = attention_chunk<Width, ValueWidth>;
    prepare(kernel, 227 * 1024);
    const dim3 grid(static_cast<unsigned>((rows * heads_per_group + kChunkQueries - 1) / kChunkQueries),
                    static_cast<unsigned>(groups));
    cudaStream_t stream;
    BENCH_CHECK(cudaStreamCreate(&stream));
    auto enqueue = [&] {
      BENCH_CHECK(launch_dependent(stream, grid, 32 * kChunkWarps,
                                   static_cast<size_t>(attention_chunk_shared_bytes(Width, ValueWidth)), kernel,
                                   out.data(), dq.data(), state.data(), state.data() + 2 * context * key_row,
                                   with_sinks ? dsinks.data() : nullptr, pos.data(), slot.data(), int64_t{0}, rows,
                                   groups, heads_per_group, scale(), window, limit));
    };
    enqueue();
    BENCH_CHECK(cudaStreamSynchronize(stream));
    if (us) *us = time_graph(stream, 15, enqueue).median_us;
    cudaStreamDestroy(stream);
    return out.read();
  }

  /// One query's values in double.
  std::vector<double> expected(size_t row, size_t head, bool with_sinks) const {
    const auto position = static_cast<size_t>(depth) + row, group = head / static_cast<size_t>(heads_per_group);
    const size_t first =
        window > 0 && position >= static_cast<size_t>(window) ? position + 1 - static_cast<size_t>(window) : 0;
    std::vector<double> value(ValueWidth);
    double sum = with_sinks ? std::exp(double(sinks[head])) : 0;
    for (size_t p = first; p <= position; p++) {
      double score = 0;
      for (size_t i = 0; i < Width; i++)
        score += double(q[(row * heads() + head) * Width + i]) * cache[p * key_row + group * Width + i];
      score *= scale();
      if (limit > 0) score = limit * std::tanh(score / limit);
      const double w = std::exp(score);
      sum += w;
      for (size_t i = 0; i < ValueWidth; i++)
        value[i] += w * cache[context * key_row + p * value_row + group * ValueWidth + i];
    }
    for (auto& v : value) v /= sum;
    return value;
  }
};

/// Every seventh row, all heads.
template <int Width, int ValueWidth>
bool check_chunk(int groups, int heads_per_group, int rows, int depth, int window, float limit, bool sinks) {
  const Chunk<Width, ValueWidth> chunk(groups, heads_per_group, rows, depth, window, limit);
  const auto got = chunk.run(sinks), again = chunk.run(sinks);
  double difference = 0, size = 0;
  for (size_t row = 0; row < static_cast<size_t>(rows); row += 7)
    for (size_t h = 0; h < chunk.heads(); h++) {
      const auto want = chunk.expected(row, h, sinks);
      for (size_t i = 0; i < ValueWidth; i++) {
        const double d = got[(row * chunk.heads() + h) * ValueWidth + i] - want[i];
        difference += d * d, size += want[i] * want[i];
      }
    }
  bool finite = true;
  for (float x : got) finite &= std::isfinite(x);
  const double error = std::sqrt(difference / size);
  const bool same = !memcmp(got.data(), again.data(), 4 * got.size()), ok = finite && same && error < 2e-6;
  printf("chunk width %d, %d, %d x %d heads, %d rows at %d, window %d, limit %g%s: %.2e%s%s %s\n", Width, ValueWidth,
         groups, heads_per_group, rows, depth, window, double(limit), sinks ? ", sinks" : "", error,
         finite ? "" : " NOT FINITE", same ? "" : " BITS DIFFER", ok ? "ok" : "WRONG");
  return ok;
}

template <int Width>
void time_chunk(int groups, int heads_per_group, int rows, int depth) {
  const Chunk<Width, Width> chunk(groups, heads_per_group, rows, depth, 0, 0);
  float us = 0;
  chunk.run(false, &us);
  const double visible = static_cast<double>(rows) * (depth + 0.5 * rows);
  printf("time width %d, %d x %d heads, %d rows at %d: %.1f us, %.0f TFLOP/s of products (as many again for halves)\n",
         Width, groups, heads_per_group, rows, depth, double(us),
         4e-6 * visible * static_cast<double>(chunk.heads()) * Width / double(us));
}

}  // namespace bench

int main() {
  using namespace bench;
  setlinebuf(stdout);
  bool ok = true;
  for (int rows : {2, 16, 64, 128}) {
    ok &= check_chunk<64, 64>(2, 7, rows, 100, 0, 0, false);
    ok &= check_chunk<128, 128>(2, 4, rows, 0, 0, 0, true);
    ok &= check_chunk<128, 128>(8, 1, rows, 333, 50, 30, false);
    ok &= check_chunk<256, 256>(1, 4, rows, 70, 100, 0, false);
    ok &= check_chunk<80, 80>(2, 1, rows, 31, 0, 0, false);
    ok &= check_chunk<96, 64>(1, 3, rows, 64, 17, 0, true);
  }
  printf(ok ? "all right\n" : "WRONG\n");
  for (int depth : {0, 4096}) {
    time_chunk<64>(2, 7, 512, depth);
    time_chunk<64>(8, 4, 512, depth);
    time_chunk<128>(8, 4, 512, depth);
    time_chunk<256>(1, 4, 512, depth);
    time_chunk<128>(8, 4, 64, depth);
    time_chunk<128>(8, 4, 8, depth);
  }
  return ok ? 0 : 1;
}
