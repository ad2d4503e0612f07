// Products of float weights and a chunk's tokens on tensor cores against float64: both kernels, all layouts, slices of
// all lengths, all sizes of blocks, tokens and rows that fill no tile, activations of any size.
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "kernels/repacked_matrix.h"
#include "layout/floats.cuh"
#include "ops/split_vectors.cuh"
#include "ops/tile_kernels.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

constexpr double kEpsilon = 1e-6;
/// The error that ops/split_vectors.cuh states and that of float sums, of the sum of the products' magnitudes. Tensor
/// cores drop what the portable sums round.
#if defined(__CUDACC__)
constexpr double kSumsBound = 3e-6;
#else
constexpr double kSumsBound = 8e-7;
#endif
template <class L>
constexpr double kBound = kSumsBound + (L::Words::kBfloat ? 5e-6 : 2e-7);

std::vector<float> scaled(std::vector<float> v, float factor) {
  for (float& x : v) x *= factor;
  return v;
}

/// Tokens' vectors as a product of `Matrices` matrices takes them; the norm may be left out.
template <class L, int Columns, int Matrices>
struct Inputs {
  /// `tile`: tokens that the products' blocks read at a time.
  Inputs(int token_count, int tile, bool with_norm, float size)
      : tokens(token_count),
        normed(with_norm),
        x(scaled(random_floats(size_t(token_count * Columns), 4), size)),
        norm(random_floats(size_t(Columns), 5)),
        vectors(split_vectors_bytes(Columns, token_count)) {
    const int blocks = (tokens + tile - 1) / tile * tile;
    run_kernel(split_vectors<L, Columns, Matrices>, dim3(unsigned(blocks)), 32 * streamed_warps(Columns, Matrices == 2),
               streamed_vector_bytes(kFloatActivations, slices(Columns).full) * slices(Columns).count, vectors.data(),
               x.data(), normed ? norm.data() : nullptr, float(kEpsilon), tokens);
  }
  std::vector<double> vector(int token) const {
    const std::vector<float> all = x.values(), weights = norm.values();
    std::vector<double> v(all.begin() + token * Columns, all.begin() + (token + 1) * Columns);
    double squares = 0;
    for (double y : v) squares += y * y;
    for (size_t i = 0; normed && i < v.size(); i++)
      v[i] *= double(weights[i]) / std::sqrt(squares / Columns + kEpsilon);
    return v;
  }
  int tokens;
  bool normed;
  DeviceArray<float> x, norm;
  DeviceArray<uint8_t> vectors;
};

struct Wide {
  static int tile(int) { return kWideTokens; }
  static constexpr auto geometry = wide_geometry;
  template <class L, int Columns>
  static auto kernel(const WideGeometry& g) {
    return wide_kernel<L, Columns>(g);
  }
  template <class L, int Columns>
  static auto gated_kernel(const WideGeometry& g) {
    return wide_gated_kernel<L, Columns>(g);
  }
};
struct Mma {
  static int tile(int tokens) { return mma_vector_tile(tokens); }
  static constexpr auto geometry = mma_geometry;
  template <class L, int Columns>
  static auto kernel(const MmaGeometry& g) {
    return mma_kernel<L, Columns>(g);
  }
  template <class L, int Columns>
  static auto gated_kernel(const MmaGeometry& g) {
    return mma_gated_kernel<L, Columns>(g);
  }
};

/// A random matrix of L's weights, as L has it.
template <class L>
struct FloatMatrix {
  using Repacked = RepackedFloats<typename L::Words>;
  static constexpr FormatId kFormat = L::Words::kBfloat ? FormatId::BF16 : FormatId::F16;
  FloatMatrix(int rows, int columns, uint32_t seed)
      : matrix(kFormat, rows, columns, seed), stored(random_weights(format(kFormat), matrix.elements, seed)) {}
  const uint8_t* data() const { return std::is_same_v<L, Repacked> ? matrix.repacked.data() : stored.data(); }
  Matrix<Repacked> matrix;
  DeviceArray<uint8_t> stored;
};

/// A row's product with `x`, and the sum of its terms' magnitudes.
struct Expected {
  double value = 0, size = 0;
};
template <class L>
std::vector<Expected> products(const FloatMatrix<L>& of, const std::vector<double>& x) {
  const auto& m = of.matrix;
  std::vector<Expected> y(static_cast<size_t>(m.rows));
  for (size_t r = 0; r < y.size(); r++)
    for (size_t c = 0; c < x.size(); c++) {
      const double term = m.weights[r * x.size() + c] * x[c];
      y[r].value += term, y[r].size += std::abs(term);
    }
  return y;
}

template <class Kernels, class L, int Columns>
void expect_product(int rows, int tokens, bool normed, int multiprocessors, float size = 1) {
  SCOPED_TRACE(std::to_string(Columns) + " columns, " + std::to_string(tokens) + " tokens");
  const FloatMatrix<L> m(rows, Columns, 3);
  const Inputs<L, Columns, 1> in(tokens, Kernels::tile(tokens), normed, size);
  const auto g = Kernels::geometry(rows, tokens, false, multiprocessors);
  const DeviceArray<float> out(size_t(tokens * rows));
  const DeviceArray<float> bias(scaled(random_floats(size_t(rows), 6), size)),
      residual(scaled(random_floats(size_t(tokens * rows), 7), size));
  run_kernel(Kernels::template kernel<L, Columns>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads,
             g.shared_bytes, out.data(), m.data(), in.vectors.data(), bias.data(), residual.data(), rows, tokens);
  const std::vector<float> got = out.values(), added = residual.values(), biases = bias.values();
  for (int t = 0; t < tokens; t++) {
    const std::vector<Expected> expected = products(m, in.vector(t));
    for (int r = 0; r < rows; r++) {
      const size_t at = size_t(t * rows + r);
      const double value = expected[size_t(r)].value + double(biases[size_t(r)]) + double(added[at]);
      ASSERT_NEAR(double(got[at]), value, kBound<L> * (expected[size_t(r)].size + double(size)))
          << "token " << t << ", row " << r;
    }
  }
}

TEST(WideProduct, IsAsExactAsItsTwoWords) {
  expect_product<Wide, RepackedBF16, 256>(130, 33, true, 1);
  expect_product<Wide, RepackedBF16, 1280>(70, 64, true, 132);
  expect_product<Wide, RepackedF16, 896>(100, 110, true, 2);
  expect_product<Wide, RepackedF16, 256>(300, 70, true, 1);
  expect_product<Wide, RepackedF16, 128>(1, 40, false, 132);
  expect_product<Wide, RepackedBF16, 2304>(64, 32, false, 132);
}
TEST(WideProduct, TakesActivationsOfAnySize) {
  expect_product<Wide, RepackedF16, 256>(64, 32, false, 132, 1e9f);
  expect_product<Wide, RepackedF16, 256>(64, 32, false, 132, 1e-9f);
  expect_product<Wide, RepackedBF16, 256>(64, 32, false, 132, 1e9f);
}

TEST(MmaProduct, IsAsExactAsItsTwoWords) {
  expect_product<Mma, RepackedBF16, 256>(130, 33, true, 1);
  expect_product<Mma, RepackedBF16, 1280>(70, 64, true, 132);
  expect_product<Mma, RepackedF16, 896>(100, 110, true, 4);
  expect_product<Mma, RepackedF16, 256>(300, 20, true, 1);
  expect_product<Mma, RepackedF16, 128>(1, 16, false, 132);
  expect_product<Mma, RepackedBF16, 2304>(64, 32, false, 4);
}
TEST(MmaProduct, ReadsMatricesAsTheFileHasThem) {
  expect_product<Mma, StoredBF16, 1280>(70, 17, true, 132);
  expect_product<Mma, StoredF16, 896>(100, 64, true, 4);
  expect_product<Mma, StoredBF16, 2304>(130, 70, false, 1);
}
TEST(MmaProduct, TakesActivationsOfAnySize) {
  expect_product<Mma, RepackedF16, 256>(64, 16, false, 132, 1e9f);
  expect_product<Mma, StoredF16, 256>(64, 16, false, 132, 1e-9f);
  expect_product<Mma, StoredBF16, 256>(64, 16, false, 132, 1e9f);
}
/// From blocks of 128 rows and 64 tokens for a small chip to blocks of 16 for a large one.
TEST(MmaProduct, HasBlocksOfAllSizes) {
  std::set<std::pair<int, int>> seen;
  for (const int multiprocessors : {1, 2, 3, 8, 10, 132}) {
    const MmaGeometry g = mma_geometry(130, 64, false, multiprocessors);
    seen.insert({g.rows, g.tokens});
    expect_product<Mma, RepackedBF16, 256>(130, 64, false, multiprocessors);
  }
  EXPECT_EQ(seen, (std::set<std::pair<int, int>>{{16, 16}, {32, 16}, {32, 32}, {64, 32}, {64, 64}, {128, 64}}));
}

template <class Kernels, class L, int Columns>
void expect_gated_product(int rows, int tokens, int gelu, int multiprocessors) {
  SCOPED_TRACE(std::to_string(tokens) + (gelu ? " tokens, GELU" : " tokens, SiLU"));
  const FloatMatrix<L> gate(rows, Columns, 3), up(rows, Columns, 4);
  const Inputs<L, Columns, 2> in(tokens, Kernels::tile(tokens), true, 1);
  const auto g = Kernels::geometry(rows, tokens, true, multiprocessors);
  const DeviceArray<float> out(size_t(tokens * rows));
  run_kernel(Kernels::template gated_kernel<L, Columns>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads,
             g.shared_bytes, out.data(), gate.data(), up.data(), in.vectors.data(), gelu, rows, tokens);
  const std::vector<float> got = out.values();
  for (int t = 0; t < tokens; t++) {
    const std::vector<double> x = in.vector(t);
    const std::vector<Expected> gates = products(gate, x), ups = products(up, x);
    for (size_t r = 0; r < size_t(rows); r++) {
      const double v = gates[r].value, z = gelu ? 1.5957691216 * (v + 0.044715 * v * v * v) : v;
      const double share = 1 / (1 + std::exp(-z));
      // Neither activation is steeper than 1.2; the kernel's own share is good to about 1e-6.
      const double bound = kBound<L> * (1.2 * gates[r].size * std::abs(ups[r].value) +
                                        std::abs(v * share) * ups[r].size + std::abs(v * ups[r].value));
      ASSERT_NEAR(double(got[size_t(t * rows) + r]), v * share * ups[r].value, bound + 1e-12)
          << "token " << t << ", row " << r;
    }
  }
}

TEST(WideProduct, Gates) {
  expect_gated_product<Wide, RepackedBF16, 512>(45, 40, 0, 132);
  expect_gated_product<Wide, RepackedF16, 256>(96, 64, 1, 2);
  expect_gated_product<Wide, RepackedBF16, 256>(150, 128, 0, 1);
}
TEST(MmaProduct, Gates) {
  expect_gated_product<Mma, RepackedBF16, 512>(45, 40, 0, 132);
  expect_gated_product<Mma, RepackedF16, 256>(96, 64, 1, 4);
  expect_gated_product<Mma, StoredBF16, 256>(150, 128, 0, 1);
}

}  // namespace
}  // namespace lane::test
