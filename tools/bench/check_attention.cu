// Checks split attention on a GPU against plain loops in double: see README.md. Exit status 1 if anything is wrong.
#include "bench_device.cuh"
#include "ops/attention_split.cuh"

namespace bench {
using namespace LANE_NAMESPACE;

float cached(const std::vector<uint8_t>& state, size_t i) {
  uint16_t bits;
  memcpy(&bits, &state[2 * i], 2);
  return __half2float(__ushort_as_half(bits));
}

std::vector<uint8_t> random_cache(size_t values, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<uint8_t> bytes(2 * values);
  for (size_t i = 0; i < values; i++) {
    const uint16_t bits = __half_as_ushort(__float2half(normal(random)));
    memcpy(&bytes[2 * i], &bits, 2);
  }
  return bytes;
}

/// Sequence s stands at depth - 7 s. Reads the caches as the launch left them.
template <int Width, int Heads>
bool check_attention(int groups, int depth, int splits, int window, int sequences) {
  std::mt19937 random(static_cast<unsigned>(depth));
  std::normal_distribution<float> normal;
  const auto context = static_cast<size_t>(depth + 1), row = static_cast<size_t>(groups * Width),
             heads = static_cast<size_t>(groups * Heads);
  const size_t stride = 2 * context * row * sizeof(__half);
  Array<uint8_t> state(random_cache(2 * context * row * static_cast<size_t>(sequences), random));
  auto vector = [&](size_t n) {
    std::vector<float> v(n);
    for (auto& x : v) x = normal(random);
    return v;
  };
  const auto n = static_cast<size_t>(sequences);
  const auto q = vector(n * heads * Width), k = vector(n * row), v = vector(n * row);
  std::vector<float> rotary(context * Width);
  for (size_t i = 0; i < rotary.size(); i += 2)
    rotary[i] = std::cos(0.37f * static_cast<float>(i)), rotary[i + 1] = std::sin(0.37f * static_cast<float>(i));
  std::vector<int> position(n), slot(n);
  for (int s = 0; s < sequences; s++)
    position[static_cast<size_t>(s)] = std::max(0, depth - 7 * s), slot[static_cast<size_t>(s)] = s;
  const Array<float> dq(q), dk(k), dv(v), drotary(rotary);
  const Array<int> dposition(position), dslot(slot), arrived(std::vector<int>(n * stride / 4));
  Array<float> out(n * heads * Width),
      partial(n * static_cast<size_t>(groups) *
              static_cast<size_t>(attention_split_partial_floats(splits, Heads, Width)));
  const float scale = 1.f / std::sqrt(static_cast<float>(Width));
  std::vector<std::vector<float>> got;
  prepare(attention_split<Width, Width, Heads>, 227 * 1024);
  for (int again = 0; again < 2; again++) {
    out.poison();
    BENCH_CHECK(launch_dependent(
        nullptr, static_cast<unsigned>(splits * groups * sequences + 5), 32 * attention_split_warps(Width),
        static_cast<size_t>(attention_split_shared_bytes(Width, Width, Heads)), attention_split<Width, Width, Heads>,
        out.data(), state.data(), state.data() + stride / 2, partial.data(), arrived.data(), dq.data(), dk.data(),
        dv.data(), nullptr, nullptr, 1e-6f, drotary.data(), Width, 0, nullptr, dposition.data(), dslot.data(),
        static_cast<int64_t>(stride), sequences, groups, Heads, splits, scale, window, 0.f));
    BENCH_CHECK(cudaDeviceSynchronize());
    got.push_back(out.read());
  }
  const auto after = state.read();
  double difference = 0, size = 0;
  for (size_t s = 0; s < n; s++)
    for (size_t h = 0; h < heads; h++) {
      const auto p = static_cast<size_t>(position[s]),
                 first = window && p >= static_cast<size_t>(window) ? p + 1 - static_cast<size_t>(window) : 0;
      const size_t base = s * 2 * context * row + h / Heads * Width;
      std::vector<double> turned(Width), weight, value(Width);
      const float* x = &q[(s * heads + h) * Width];
      for (size_t i = 0; i < Width; i++) {
        const size_t pair = i % (Width / 2);
        const double c = rotary[p * Width + 2 * pair], t = rotary[p * Width + 2 * pair + 1];
        turned[i] = i < Width / 2 ? x[i] * c - x[i + Width / 2] * t : x[i] * c + x[i - Width / 2] * t;
      }
      double sum = 0;
      for (size_t r = first; r <= p; r++) {
        double dot = 0;
        for (size_t i = 0; i < Width; i++) dot += turned[i] * cached(after, base + r * row + i);
        const double w = std::exp(dot * scale);
        sum += w;
        for (size_t i = 0; i < Width; i++) value[i] += w * cached(after, base + (context + r) * row + i);
      }
      for (size_t i = 0; i < Width; i++) {
        const double d = got[0][(s * heads + h) * Width + i] - value[i] / sum;
        difference += d * d, size += value[i] / sum * value[i] / sum;
      }
    }
  const bool same = !memcmp(got[0].data(), got[1].data(), 4 * got[0].size()),
             near = std::sqrt(difference / size) < 2e-6;
  printf("attention width %d, %d x %d heads, depth %d, %d splits, window %d, %d sequences: %.2e %s%s\n", Width, groups,
         Heads, depth, splits, window, sequences, std::sqrt(difference / size), same ? "" : "BITS DIFFER ",
         same && near ? "ok" : "WRONG");
  return same && near;
}

/// Time of a launch in a chain of dependent ones, over the caches of as many layers.
template <int Width, int Heads>
void time_attention(int groups, int depth) {
  constexpr int kLayers = 24, kMultiprocessors = 132, kSharedLimit = 227 * 1024;
  const auto row = static_cast<size_t>(groups * Width), heads = row * Heads;
  const size_t halves = static_cast<size_t>(depth + 1) * row;
  const auto g = attention_split_geometry(Width, Width, Heads, groups, 1, (depth + kSplitRows) / kSplitRows,
                                          kMultiprocessors, kSharedLimit);
  std::mt19937 random(5);
  const Array<uint8_t> caches(random_cache(2 * halves, random));
  std::vector<Array<uint8_t>> layers;
  for (int i = 0; i < kLayers; i++) {
    layers.emplace_back(4 * halves, false);
    BENCH_CHECK(cudaMemcpy(layers.back().data(), caches.data(), 4 * halves, cudaMemcpyDeviceToDevice));
  }
  const Array<float> x(std::vector<float>(heads, 0.5f)), out(heads),
      rotary(std::vector<float>(static_cast<size_t>(depth + 1) * Width, 0.7f)),
      partial(static_cast<size_t>(groups) *
              static_cast<size_t>(attention_split_partial_floats(g.splits, Heads, Width)));
  const Array<int> arrived(std::vector<int>(static_cast<size_t>(groups))), position(std::vector<int>{depth}),
      slot(std::vector<int>{0});
  const auto kernel = attention_split<Width, Width, Heads>;
  prepare(kernel, kSharedLimit);
  cudaStream_t stream;
  BENCH_CHECK(cudaStreamCreate(&stream));
  const Timing t = time_graph(stream, 31, [&] {
    for (auto& layer : layers)
      BENCH_CHECK(launch_dependent(
          stream, static_cast<unsigned>(g.grid), static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes),
          kernel, out.data(), layer.data(), layer.data() + 2 * halves, partial.data(), arrived.data(), x.data(),
          x.data(), x.data(), nullptr, nullptr, 1e-6f, rotary.data(), Width, 0, nullptr, position.data(), slot.data(),
          int64_t{0}, 1, groups, Heads, g.splits, 1.f / std::sqrt(static_cast<float>(Width)), 0, 0.f));
  });
  printf("time width %d, %d x %d heads, depth %d, %d splits: %.2f us a launch; %.2f us for its bytes at 4.3 TB/s\n",
         Width, groups, Heads, depth, g.splits, double(t.median_us) / kLayers, 4 * static_cast<double>(halves) / 4.3e6);
  cudaStreamDestroy(stream);
}

}  // namespace bench

int main() {
  using namespace bench;
  bool ok = true;
  for (int depth : {0, 1, 64, 200, 1777}) {
    ok &= check_attention<64, 7>(2, depth, 66, 0, 2);
    ok &= check_attention<80, 3>(2, depth, 16, 0, 2);
    ok &= check_attention<128, 4>(8, depth, 16, 0, 1);
    ok &= check_attention<256, 4>(1, depth, 132, 512, 3);
  }
  printf(ok ? "all right\n" : "WRONG\n");
  for (int depth : {0, 1000, 4096, 32768}) {
    time_attention<64, 7>(2, depth);
    time_attention<64, 4>(8, depth);
    time_attention<128, 4>(8, depth);
    time_attention<256, 4>(1, depth);
  }
  return ok ? 0 : 1;
}
