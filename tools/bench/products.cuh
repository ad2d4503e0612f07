// Launches of the streamed products, as the planner makes them, for the checks and the benches.
#pragma once
#include "bench_device.cuh"
#include "layout/floats.cuh"
#include "layout/q4_k.cuh"
#include "layout/q5_0.cuh"
#include "layout/q6_k.cuh"
#include "layout/q8_0.cuh"
#include "layout/repack.cuh"
#include "ops/streamed_product.cuh"

namespace bench {
using namespace LANE_NAMESPACE;

template <class L>
constexpr lane::FormatId kFormat = lane::FormatId::F32;
template <>
inline constexpr lane::FormatId kFormat<RepackedQ4_K> = lane::FormatId::Q4_K;
template <>
inline constexpr lane::FormatId kFormat<RepackedQ5_0> = lane::FormatId::Q5_0;
template <>
inline constexpr lane::FormatId kFormat<RepackedQ6_K> = lane::FormatId::Q6_K;
template <>
inline constexpr lane::FormatId kFormat<RepackedQ8_0> = lane::FormatId::Q8_0;
template <>
inline constexpr lane::FormatId kFormat<RepackedF16> = lane::FormatId::F16;
template <>
inline constexpr lane::FormatId kFormat<RepackedBF16> = lane::FormatId::BF16;

struct Chip {
  int multiprocessors = 132;
  int shared_limit = 227 * 1024;
};

template <class L>
void enqueue_repack(cudaStream_t stream, uint8_t* out, const uint8_t* stored, int first, int count, int rows,
                    int columns) {
  const int64_t tasks = static_cast<int64_t>(count) * columns / kBlockColumns;
  BENCH_CHECK(launch(stream, static_cast<unsigned>((tasks + 255) / 256), 256, 0, repack<L>, out, stored, first, count,
                     rows, columns));
}

/// A repacked matrix of noise.
template <class L>
struct Noise {
  Noise(int rows_, int columns, uint32_t seed)
      : rows(rows_), repacked(repacked_bytes(L::kBytes256, static_cast<size_t>(rows_), columns), false) {
    const lane::Format& f = lane::format(kFormat<L>);
    const size_t elements = static_cast<size_t>(rows) * static_cast<size_t>(columns);
    Array<uint8_t> stored(f.row_bytes(elements), false);
    fill_with_noise(f, stored.data(), elements, seed, nullptr);
    enqueue_repack<L>(nullptr, repacked.data(), stored.data(), 0, rows, rows, columns);
    BENCH_CHECK(cudaDeviceSynchronize());
  }
  int rows;
  Array<uint8_t> repacked;
};

/// A model's matrices of noise. Qkv, Value, Down and Head are layouts; Qkv is also the output's, the gate's and the up
/// matrix's.
template <class Qkv, class Value, class Down, class Head, int Width, int Inner>
struct ModelOfNoise {
  struct Layer {
    Noise<Qkv> q, k, o, gate, up;
    Noise<Value> v;
    Noise<Down> down;
  };
  ModelOfNoise(int layer_count, int kv_rows, int vocabulary) : head(vocabulary, Width, 99) {
    for (uint32_t i = 0; i < static_cast<uint32_t>(layer_count); i++)
      layers.emplace_back(new Layer{{Width, Width, 7 * i},
                                    {kv_rows, Width, 7 * i + 1},
                                    {Width, Width, 7 * i + 2},
                                    {Inner, Width, 7 * i + 3},
                                    {Inner, Width, 7 * i + 4},
                                    {kv_rows, Width, 7 * i + 5},
                                    {Width, Inner, 7 * i + 6}});
  }
  std::vector<std::unique_ptr<Layer>> layers;
  Noise<Head> head;
};

inline std::vector<float> normal_values(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (auto& x : v) x = normal(random);
  return v;
}

struct Vector {
  const float *x, *norm = nullptr;
  float epsilon = 1e-6f;
};

template <class L, int Columns, int Words>
void enqueue_product(cudaStream_t stream, const Chip& chip, float* out, const uint8_t* weights, int rows, Vector v,
                     const float* bias = nullptr, const float* residual = nullptr) {
  const StreamedMatrix m{L::kBytes256, rows};
  const StreamedGeometry g = streamed_geometry(Columns, &m, 1, false, Words, chip.multiprocessors, chip.shared_limit);
  const auto kernel = streamed_product<L, Columns, Words>;
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, static_cast<unsigned>(g.grid), static_cast<unsigned>(g.threads),
                               static_cast<size_t>(g.shared_bytes), kernel, out, weights, v.x, v.norm, v.epsilon, bias,
                               residual, rows, g.share[0].rows_per_block, g.share[0].ring));
}

template <class L, int Columns, int Words>
void enqueue_gated(cudaStream_t stream, const Chip& chip, float* out, const uint8_t* gate, const uint8_t* up, int rows,
                   Vector v, int gelu) {
  const StreamedMatrix m{L::kBytes256, rows};
  const StreamedGeometry g = streamed_geometry(Columns, &m, 1, true, Words, chip.multiprocessors, chip.shared_limit);
  const auto kernel = streamed_gated_product<L, Columns, Words>;
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(stream, static_cast<unsigned>(g.grid), static_cast<unsigned>(g.threads),
                               static_cast<size_t>(g.shared_bytes), kernel, out, gate, up, v.x, v.norm, v.epsilon, gelu,
                               rows, g.share[0].rows_per_block, g.share[0].ring));
}

struct ProductOf {
  float* out;
  const uint8_t* weights;
  int rows;
  const float* bias = nullptr;
};
template <class L0, class L1, class L2, int Columns, int Words>
void enqueue_products(cudaStream_t stream, const Chip& chip, const ProductOf (&p)[3], Vector v) {
  const StreamedMatrix m[] = {{L0::kBytes256, p[0].rows}, {L1::kBytes256, p[1].rows}, {L2::kBytes256, p[2].rows}};
  const StreamedGeometry g = streamed_geometry(Columns, m, 3, false, Words, chip.multiprocessors, chip.shared_limit);
  const auto& s = g.share;
  const auto kernel = streamed_products<L0, L1, L2, Columns, Words>;
  prepare(kernel, chip.shared_limit);
  BENCH_CHECK(launch_dependent(
      stream, static_cast<unsigned>(g.grid), static_cast<unsigned>(g.threads), static_cast<size_t>(g.shared_bytes),
      kernel, p[0].out, p[1].out, p[2].out, p[0].weights, p[1].weights, p[2].weights, v.x, v.norm, v.epsilon, p[0].bias,
      p[1].bias, p[2].bias, p[0].rows, p[1].rows, p[2].rows, s[0].blocks, s[1].blocks, s[2].blocks, s[0].rows_per_block,
      s[1].rows_per_block, s[2].rows_per_block, s[0].ring, s[1].ring, s[2].ring));
}

}  // namespace bench
