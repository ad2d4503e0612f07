// Products of a chunk's many tokens against sums in double, on the host chip: every quantized layout, any number of
// tokens, columns of any length.
#include <gtest/gtest.h>

#include "kernels/repacked_matrix.h"
#include "layout/all.cuh"
#include "ops/chunk_product.cuh"
#include "ops/half_vectors.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

constexpr float kEpsilon = 1e-6f;

/// Tokens' vectors, some of them a thousand times larger than others, and their halves.
template <int Columns, int Words>
struct Inputs {
  Inputs(int token_count, bool normed)
      : tokens(token_count),
        values(random_floats(size_t(token_count * Columns), 4)),
        weights(random_floats(Columns, 5)),
        halves(half_vectors_bytes(Columns, Words, token_count)) {
    for (int i = 0; i < tokens * Columns; i++) values[size_t(i)] *= i / Columns % 3 ? 1.f : 3e4f;
    const DeviceArray<float> x(values), norm(weights);
    const unsigned blocks = unsigned(tokens + kChunkTokens - 1) / kChunkTokens * kChunkTokens;
    run_kernel(half_vectors<Columns, Words>, dim3(blocks), half_vectors_threads(Columns), 0, halves.data(), x.data(),
               normed ? norm.data() : nullptr, kEpsilon, tokens);
    if (!normed) weights.assign(Columns, 0.f);
  }
  /// A token's vector as a product sees it.
  std::vector<double> exact(int token) const {
    std::vector<double> v(Columns);
    double squares = 0;
    for (int c = 0; c < Columns; c++) v[size_t(c)] = double(values[size_t(token * Columns + c)]);
    for (const double x : v) squares += x * x;
    if (weights[0] == 0.f) return v;
    for (int c = 0; c < Columns; c++)
      v[size_t(c)] *= double(weights[size_t(c)]) / std::sqrt(squares / Columns + double(kEpsilon));
    return v;
  }
  int tokens;
  std::vector<float> values, weights;
  DeviceArray<uint8_t> halves;
};

/// Root mean square of got - expected, each token's over the root mean square of what is expected for it.
struct Errors {
  double squares = 0;
  size_t count = 0;
  void add(const std::vector<double>& expected, const float* got) {
    double size = 0, error = 0;
    for (size_t r = 0; r < expected.size(); r++) {
      size += expected[r] * expected[r];
      error += std::isnan(got[r]) ? INFINITY : (double(got[r]) - expected[r]) * (double(got[r]) - expected[r]);
    }
    squares += error / size, count++;
  }
  double mean() const { return std::sqrt(squares / double(count)); }
};
/// A half and its rest keep some 15 bits, a half alone 11; sums are float.
template <int Words>
constexpr double kBound = Words == 2 ? 4e-5 : 1e-3;

/// A matrix's products with random vectors.
template <class L, int Columns, int Words, int Size>
void expect_products_of(const Matrix<L>& m, int tokens, bool normed) {
  const int rows = m.rows;
  const Inputs<Columns, Words> in(tokens, normed);
  const DeviceArray<float> bias(random_floats(size_t(rows), 6)), residual(random_floats(size_t(tokens * rows), 7));
  const DeviceArray<float> out(size_t(tokens * rows));
  const ChunkMatrix shape{rows, L::kBytes256};
  constexpr ChunkSize kSize = kChunkSizes[Size];
  const ChunkGeometry g = chunk_geometry_of(kSize, &shape, 1, tokens, false, Words);
  const dim3 grid{unsigned(g.grid_x), unsigned(g.grid_y)};
  run_kernel(chunk_product<L, Columns, Words, kSize.tokens, kSize.groups, kSize.splits>, grid, g.threads,
             g.shared_bytes, out.data(), m.repacked.data(), in.halves.data(), bias.data(), residual.data(), rows,
             tokens);
  const std::vector<float> got = out.values(), b = bias.values(), r = residual.values();
  Errors errors;
  for (int t = 0; t < tokens; t++) {
    std::vector<double> expected = m.times(in.exact(t));
    for (int row = 0; row < rows; row++)
      expected[size_t(row)] += double(b[size_t(row)]) + double(r[size_t(t * rows + row)]);
    errors.add(expected, &got[size_t(t * rows)]);
  }
  EXPECT_LE(errors.mean(), kBound<Words>);
}

template <class L, int Columns, int Words, int Size>
void expect_products(FormatId id, int rows, int tokens, bool normed) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(Columns) + " columns, size " +
               std::to_string(Size));
  expect_products_of<L, Columns, Words, Size>(Matrix<L>(id, rows, Columns, 3), tokens, normed);
}

/// A format of each kind: with a scale header, with a scale a half, with minimums, with a scale a block.
template <int Size>
void expect_products_of_size() {
  expect_products<RepackedQ4_K, 512, 2, Size>(FormatId::Q4_K, 131, 65, true);
  expect_products<RepackedQ6_K, 1280, 2, Size>(FormatId::Q6_K, 70, 40, false);
  expect_products<RepackedQ4_1, 2432, 2, Size == 4 ? 3 : Size>(FormatId::Q4_1, 30, 17, true);
  expect_products<RepackedQ8_0, 896, 2, Size>(FormatId::Q8_0, 130, 33, true);
}

/// In a grid several parts deep, launched twice: it leaves the counters as it found them.
template <class L, int Columns, int Parts, int Size>
void expect_parts(FormatId id, int rows, int tokens) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(Parts) + " parts, size " + std::to_string(Size));
  const Matrix<L> m(id, rows, Columns, 3);
  const Inputs<Columns, 2> in(tokens, true);
  const DeviceArray<float> residual(random_floats(size_t(tokens * rows), 7)), out(size_t(tokens * rows));
  const ChunkMatrix shape{rows, L::kBytes256};
  constexpr ChunkSize kSize = kChunkSizes[Size];
  ChunkGeometry g = chunk_geometry_of(kSize, &shape, 1, tokens, false, 2);
  g.parts = Parts;
  ASSERT_TRUE(chunk_takes_parts(g, Columns, Parts, 132));
  const DeviceArray<float> partial(chunk_partial_floats(g));
  auto* counters = reinterpret_cast<int*>(in.halves.data() + chunk_counters_offset(Columns, 2, tokens));
  const float* none = nullptr;
  for (int i = 0; i < 2; i++)
    run_kernel(chunk_part_product<L, Columns, 2, kSize.tokens, kSize.groups, kSize.splits, Parts>,
               dim3(unsigned(g.grid_x), unsigned(g.grid_y), unsigned(Parts)), g.threads, g.shared_bytes, out.data(),
               m.repacked.data(), in.halves.data(), none, residual.data(), rows, tokens, partial.data(), counters);
  const std::vector<float> got = out.values(), r = residual.values();
  Errors errors;
  for (int t = 0; t < tokens; t++) {
    std::vector<double> expected = m.times(in.exact(t));
    for (int row = 0; row < rows; row++) expected[size_t(row)] += double(r[size_t(t * rows + row)]);
    errors.add(expected, &got[size_t(t * rows)]);
  }
  EXPECT_LE(errors.mean(), kBound<2>);
}

TEST(ChunkProduct, IsTheSumInDoubleOfParts) {
  expect_parts<RepackedQ4_K, 2048, 2, 3>(FormatId::Q4_K, 70, 33);
  expect_parts<RepackedQ4_K, 3072, 3, 1>(FormatId::Q4_K, 130, 66);
  expect_parts<RepackedQ6_K, 2048, 2, 4>(FormatId::Q6_K, 33, 20);
}

TEST(ChunkProduct, IsTheSumInDoubleInBlocksOfEachSize) {
  expect_products_of_size<0>();
  expect_products_of_size<1>();
  expect_products_of_size<2>();
  expect_products_of_size<3>();
  expect_products_of_size<4>();
  expect_products_of_size<5>();
}

TEST(ChunkProduct, IsTheSumInDouble) {
  expect_products<RepackedQ4_K, 1280, 2, 2>(FormatId::Q4_K, 70, 64, true);
  expect_products<RepackedQ4_K, 256, 2, 4>(FormatId::Q4_K, 70, 32, true);
  expect_products<RepackedQ5_K, 256, 2, 2>(FormatId::Q5_K, 20, 33, true);
  expect_products<RepackedQ5_K, 768, 2, 4>(FormatId::Q5_K, 20, 33, true);
  expect_products<RepackedQ6_K, 256, 2, 0>(FormatId::Q6_K, 150, 130, true);
  expect_products<RepackedQ3_K, 256, 2, 2>(FormatId::Q3_K, 17, 64, true);
  expect_products<RepackedQ5_0, 128, 2, 0>(FormatId::Q5_0, 9, 131, true);
  expect_products<RepackedQ5_1, 896, 2, 4>(FormatId::Q5_1, 9, 17, false);
  expect_products<RepackedQ4_0, 384, 2, 4>(FormatId::Q4_0, 30, 17, true);
  expect_products<RepackedQ4_1, 1152, 2, 2>(FormatId::Q4_1, 30, 17, true);
  expect_products<RepackedIQ4_NL, 256, 2, 2>(FormatId::IQ4_NL, 30, 17, true);
  expect_products<RepackedIQ4_XS, 256, 2, 2>(FormatId::IQ4_XS, 30, 17, true);
  expect_products<RepackedQ4_K, 8192, 2, 4>(FormatId::Q4_K, 5, 18, true);  // vectors by more threads
  expect_products<RepackedQ4_K, 256, 1, 3>(FormatId::Q4_K, 30, 17, true);
  expect_products<RepackedQ6_K, 256, 1, 0>(FormatId::Q6_K, 130, 100, true);
}

double activated(double v, bool gelu) {
  return gelu ? 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v))) : v / (1 + std::exp(-v));
}

template <class L, int Columns, int Size>
void expect_gated(FormatId id, int rows, int tokens, bool gelu) {
  SCOPED_TRACE(std::string(format(id).name) + (gelu ? ", GELU" : ", SiLU"));
  const Matrix<L> gate(id, rows, Columns, 3), up(id, rows, Columns, 4);
  const Inputs<Columns, 2> in(tokens, true);
  const DeviceArray<float> out(size_t(tokens * rows));
  const ChunkMatrix shape{rows, L::kBytes256};
  constexpr ChunkSize kSize = kChunkSizes[Size];
  const ChunkGeometry g = chunk_geometry_of(kSize, &shape, 1, tokens, true, 2);
  const dim3 grid{unsigned(g.grid_x), unsigned(g.grid_y)};
  run_kernel(chunk_gated_product<L, Columns, 2, kSize.tokens, kSize.groups, kSize.splits>, grid, g.threads,
             g.shared_bytes, out.data(), gate.repacked.data(), up.repacked.data(), in.halves.data(), int(gelu), rows,
             tokens);
  const std::vector<float> got = out.values();
  Errors errors;
  for (int t = 0; t < tokens; t++) {
    std::vector<double> expected = gate.times(in.exact(t));
    const std::vector<double> other = up.times(in.exact(t));
    for (size_t row = 0; row < expected.size(); row++) expected[row] = activated(expected[row], gelu) * other[row];
    errors.add(expected, &got[size_t(t * rows)]);
  }
  EXPECT_LE(errors.mean(), 2 * kBound<2>);
}

TEST(ChunkProduct, Gates) {
  expect_gated<RepackedQ4_K, 256, 0>(FormatId::Q4_K, 70, 130, false);
  expect_gated<RepackedQ5_0, 896, 2>(FormatId::Q5_0, 33, 20, true);
  expect_gated<RepackedQ5_0, 896, 4>(FormatId::Q5_0, 33, 35, true);
  expect_gated<RepackedQ8_0, 256, 1>(FormatId::Q8_0, 100, 64, false);
  expect_gated<RepackedQ4_K, 1024, 3>(FormatId::Q4_K, 70, 30, false);
  expect_gated<RepackedQ4_K, 1024, 4>(FormatId::Q4_K, 36, 30, false);
  expect_gated<RepackedQ6_K, 512, 5>(FormatId::Q6_K, 132, 40, true);
}

/// Three matrices of two formats in one launch, the last of which may be missing.
template <int Size>
void expect_three(int rows2) {
  SCOPED_TRACE(rows2);
  constexpr int kColumns = 512, kTokens = 70;
  const Matrix<RepackedQ4_K> m0(FormatId::Q4_K, 130, kColumns, 3), m1(FormatId::Q4_K, 64, kColumns, 4);
  const Matrix<RepackedQ6_K> m2(FormatId::Q6_K, 33, kColumns, 5);
  const Inputs<kColumns, 2> in(kTokens, true);
  const ChunkMatrix shapes[] = {{130, 144}, {64, 144}, {rows2, 210}};
  constexpr ChunkSize kSize = kChunkSizes[Size];
  const ChunkGeometry g = chunk_geometry_of(kSize, shapes, 3, kTokens, false, 2);
  const DeviceArray<float> bias(random_floats(64, 6)), out0(kTokens * 130), out1(kTokens * 64), out2(kTokens * 33);
  const auto kernel =
      chunk_products<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, kColumns, 2, kSize.tokens, kSize.groups, kSize.splits>;
  const float* none = nullptr;
  run_kernel(kernel, dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads, g.shared_bytes, out0.data(), out1.data(),
             out2.data(), m0.repacked.data(), m1.repacked.data(), m2.repacked.data(), in.halves.data(), none,
             bias.data(), none, 130, 64, rows2, kTokens);
  const std::vector<float> got0 = out0.values(), got1 = out1.values(), got2 = out2.values(), b = bias.values();
  Errors errors;
  for (int t = 0; t < kTokens; t++) {
    std::vector<double> expected = m1.times(in.exact(t));
    for (size_t row = 0; row < expected.size(); row++) expected[row] += double(b[row]);
    errors.add(m0.times(in.exact(t)), &got0[size_t(t * 130)]);
    errors.add(expected, &got1[size_t(t * 64)]);
    if (rows2) errors.add(m2.times(in.exact(t)), &got2[size_t(t * 33)]);
  }
  EXPECT_LE(errors.mean(), kBound<2>);
}

TEST(ChunkProduct, TakesThreeMatrices) {
  expect_three<0>(33);
  expect_three<2>(33);
  expect_three<4>(0);
  expect_three<5>(33);
}

// Sums are multiples of d, and minimums, too: whatever their ratio.
TEST(ChunkProduct, HasMinimumsThatAreManyTimesTheScale) {
  constexpr int kRows = 70, kColumns = 1024;
  const std::vector<uint8_t> random = random_weights(format(FormatId::Q4_K), kRows * kColumns, 3);
  const auto expect = [&](auto scales_of) {
    std::vector<uint8_t> stored = random;
    for (int i = 0; i < kRows * kColumns / 256; i++) {
      const auto [d, dmin] = scales_of(i);
      const __half halves[] = {__float2half(d), __float2half(dmin)};
      std::memcpy(stored.data() + size_t(i) * 144, halves, 4);
    }
    expect_products_of<RepackedQ4_K, kColumns, 2, 2>(Matrix<RepackedQ4_K>(FormatId::Q4_K, kRows, kColumns, stored), 35,
                                                     true);
  };
  using Pair = std::pair<float, float>;
  const float scales[] = {1e-4f, -3e-3f, 0.f, 6e-8f, 40.f};
  expect([&](int i) { return Pair(1e-3f, i % 3 ? 0.02f : -0.05f); });
  expect([&](int i) { return Pair(i % 2 ? 1e-3f : 0.f, 0.1f); });
  expect([&](int i) { return Pair(scales[i % 5], 0.f); });
  expect([&](int i) { return Pair(scales[i % 5], i % 4 ? 5.f : 1e-5f); });
}

// Odd scales near the largest: a half rounds a quarter of their products with random codes.
TEST(ChunkProduct, KeepsWhatHalvesLoseOfLargeScales) {
  constexpr int kRows = 64, kColumns = 256;
  std::vector<uint8_t> stored = random_weights(format(FormatId::Q6_K), kRows * kColumns, 3);
  for (int i = 0; i < kRows; i++) std::memset(stored.data() + i * 210 + 192, i % 2 ? 127 : 125, 16);
  expect_products_of<RepackedQ6_K, kColumns, 2, 2>(Matrix<RepackedQ6_K>(FormatId::Q6_K, kRows, kColumns, stored), 8,
                                                   true);
}

__global__ void floats_of_codes(float* e4m3, float* e5m2) {
  const int code = int(threadIdx.x);
  e4m3[code] = float_of_e4m3(uint8_t(code)), e5m2[code] = float_of_e5m2(uint8_t(code));
}
/// Of a code's value and the one before it: the middle of them, and what is a little below and above.
__global__ void round_between(uint16_t* pairs, const float* e4m3) {
  const int code = int(threadIdx.x) + 1;
  const float below = e4m3[code - 1], value = e4m3[code], middle = (below + value) / 2, little = (value - below) / 64;
  pairs[4 * code] = pair_of_e4m3(value, -value), pairs[4 * code + 1] = pair_of_e4m3(middle - little, 0);
  pairs[4 * code + 2] = pair_of_e4m3(middle, 0), pairs[4 * code + 3] = pair_of_e4m3(middle + little, 0);
}

TEST(Fp8, RoundsToTheNearestAndToEven) {
  constexpr int kCodes = 127;  // then comes what is not a number
  const DeviceArray<float> e4m3(256), e5m2(256);
  const DeviceArray<uint16_t> rounded(4 * kCodes);
  run_kernel(floats_of_codes, dim3(1), 256, 0, e4m3.data(), e5m2.data());
  run_kernel(round_between, dim3(1), kCodes - 1, 0, rounded.data(), static_cast<const float*>(e4m3.data()));
  const std::vector<uint16_t> got = rounded.values();
  for (int code = 1; code < kCodes; code++) {
    EXPECT_EQ(got[size_t(4 * code)], code | (code | 0x80) << 8);
    EXPECT_EQ(got[size_t(4 * code + 1)], code - 1);
    EXPECT_EQ(got[size_t(4 * code + 2)], code % 2 ? code - 1 : code);
    EXPECT_EQ(got[size_t(4 * code + 3)], code);
  }
  EXPECT_EQ(e4m3.values()[0x7E], 448.f);
  EXPECT_EQ(e4m3.values()[1], 0x1p-9f);
  EXPECT_EQ(e4m3.values()[0xB8], -1.f);
  EXPECT_EQ(e5m2.values()[0xC5], -5.f);
}

TEST(ChunkGeometry, HasPartsWhereBlocksOfRowsAreFew) {
  const ChunkMatrix shape{4096, 144};
  EXPECT_GT(chunk_geometry(&shape, 1, 14336, 32, false, 2, 132).parts, 1);
  EXPECT_EQ(chunk_geometry(&shape, 1, 14336, 32, true, 2, 132).parts, 1);
  EXPECT_EQ(chunk_geometry(&shape, 1, 14336, 512, false, 2, 132).parts, 1);
  EXPECT_EQ(chunk_geometry(&shape, 1, 896, 32, false, 2, 132).parts, 1);  // one slice
  EXPECT_FALSE(chunk_parts_fit(4864, 5));                                 // its last slice is shorter
}

TEST(ChunkGeometry, CoversRowsAndTokensAndFitsTheChip) {
  for (const bool gated : {false, true}) {
    for (const auto& [words, bytes] : {std::pair(1, 144), std::pair(2, 144), std::pair(2, 272)}) {
      const ChunkMatrix shape{1000, bytes};
      for (const int tokens : {2, 32, 64, 65, 128, 129, 512, 2048}) {
        for (const ChunkSize& size : kChunkSizes) {
          const ChunkGeometry g = chunk_geometry_of(size, &shape, 1, tokens, gated, words);
          const int rows = g.groups * kChunkGroupRows / (gated ? 2 : 1);
          EXPECT_GE(g.grid_x * g.tokens, tokens);
          EXPECT_LT((g.grid_x - 1) * g.tokens, tokens);
          EXPECT_GE(g.grid_y * rows, 1000);
          EXPECT_LT((g.grid_y - 1) * rows, 1000);
          EXPECT_GE(chunk_ring(words, g.tokens, g.groups, bytes), 3);
          EXPECT_TRUE(has_shared(g, 227 * 1024));
          EXPECT_FALSE(has_shared(g, 99 * 1024));
        }
      }
    }
  }
}

TEST(ChunkGeometry, TakesLessTimeThanOtherSizesAndAStepForEachSplit) {
  const ChunkMatrix shape{4096, 144};
  for (const int columns : {128, 256, 4096, 14336}) {
    for (const int tokens : {32, 64, 128, 512}) {
      const ChunkGeometry best = chunk_geometry(&shape, 1, columns, tokens, false, 2, 132);
      const auto time = [&](const ChunkSize& size) {
        return chunk_time(size, chunk_geometry_of(size, &shape, 1, tokens, false, 2), columns, 132);
      };
      EXPECT_LE(best.splits, most_splits(columns));
      const auto chosen = std::find_if(std::begin(kChunkSizes), std::end(kChunkSizes), [&](const ChunkSize& size) {
        return size.tokens == best.tokens && size.groups == best.groups && size.splits == best.splits;
      });
      ASSERT_NE(chosen, std::end(kChunkSizes));
      for (const ChunkSize& size : kChunkSizes) {
        const bool can = size.splits <= most_splits(columns);
        EXPECT_TRUE(!can || chunk_time(*chosen, best, columns, 132) <= time(size));
      }
    }
  }
}

}  // namespace
}  // namespace lane::test
