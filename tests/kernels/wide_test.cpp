// Products of float weights and a chunk's many tokens against float64: both layouts, slices of all lengths, all sizes
// of blocks, tokens and rows that fill no tile, activations of any size.
#include <gtest/gtest.h>

#include "kernels/repacked_matrix.h"
#include "layout/floats.cuh"
#include "ops/split_vectors.cuh"
#include "ops/wide_product.cuh"

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
  Inputs(int token_count, bool with_norm, float size)
      : tokens(token_count),
        normed(with_norm),
        x(scaled(random_floats(size_t(token_count * Columns), 4), size)),
        norm(random_floats(size_t(Columns), 5)),
        vectors(split_vectors_bytes(Columns, token_count)) {
    const unsigned blocks = unsigned(tokens + kWideTokens - 1) / kWideTokens * kWideTokens;
    run_kernel(split_vectors<L, Columns, Matrices>, dim3(blocks), 32 * streamed_warps(Columns, Matrices == 2),
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

/// The kernel for the geometry's groups and tiles.
template <class L, int Columns>
auto wide_kernel(const WideGeometry& g) {
  return g.groups == 4   ? wide_product<L, Columns, 4, 2>
         : g.groups == 2 ? wide_product<L, Columns, 2, 1>
                         : wide_product<L, Columns, 1, 1>;
}
template <class L, int Columns>
auto wide_gated_kernel(const WideGeometry& g) {
  return g.groups == 4   ? wide_gated_product<L, Columns, 4, 2>
         : g.groups == 2 ? wide_gated_product<L, Columns, 2, 1>
                         : wide_gated_product<L, Columns, 1, 1>;
}

/// A row's product with `x`, and the sum of its terms' magnitudes.
struct Expected {
  double value = 0, size = 0;
};
template <class L>
std::vector<Expected> products(const Matrix<L>& m, const std::vector<double>& x) {
  std::vector<Expected> y(static_cast<size_t>(m.rows));
  for (size_t r = 0; r < y.size(); r++)
    for (size_t c = 0; c < x.size(); c++) {
      const double term = m.weights[r * x.size() + c] * x[c];
      y[r].value += term, y[r].size += std::abs(term);
    }
  return y;
}

template <class L, int Columns>
void expect_product(FormatId id, int rows, int tokens, bool normed, int multiprocessors, float size = 1) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(tokens) + " tokens");
  const Matrix<L> m(id, rows, Columns, 3);
  const Inputs<L, Columns, 1> in(tokens, normed, size);
  const WideGeometry g = wide_geometry(rows, tokens, false, multiprocessors);
  const DeviceArray<float> out(size_t(tokens * rows));
  const DeviceArray<float> bias(scaled(random_floats(size_t(rows), 6), size)),
      residual(scaled(random_floats(size_t(tokens * rows), 7), size));
  run_kernel(wide_kernel<L, Columns>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads, g.shared_bytes,
             out.data(), m.repacked.data(), in.vectors.data(), bias.data(), residual.data(), rows, tokens);
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
  expect_product<RepackedBF16, 256>(FormatId::BF16, 130, 33, true, 1);
  expect_product<RepackedBF16, 1280>(FormatId::BF16, 70, 64, true, 132);
  expect_product<RepackedF16, 896>(FormatId::F16, 100, 110, true, 2);
  expect_product<RepackedF16, 256>(FormatId::F16, 300, 70, true, 1);
  expect_product<RepackedF16, 128>(FormatId::F16, 1, 40, false, 132);
  expect_product<RepackedBF16, 2304>(FormatId::BF16, 64, 32, false, 132);
}
TEST(WideProduct, TakesActivationsOfAnySize) {
  expect_product<RepackedF16, 256>(FormatId::F16, 64, 32, false, 132, 1e9f);
  expect_product<RepackedF16, 256>(FormatId::F16, 64, 32, false, 132, 1e-9f);
  expect_product<RepackedBF16, 256>(FormatId::BF16, 64, 32, false, 132, 1e9f);
}

template <class L, int Columns>
void expect_gated_product(FormatId id, int rows, int tokens, int gelu, int multiprocessors) {
  SCOPED_TRACE(std::string(format(id).name) + (gelu ? ", GELU" : ", SiLU"));
  const Matrix<L> gate(id, rows, Columns, 3), up(id, rows, Columns, 4);
  const Inputs<L, Columns, 2> in(tokens, true, 1);
  const WideGeometry g = wide_geometry(rows, tokens, true, multiprocessors);
  const DeviceArray<float> out(size_t(tokens * rows));
  run_kernel(wide_gated_kernel<L, Columns>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads, g.shared_bytes,
             out.data(), gate.repacked.data(), up.repacked.data(), in.vectors.data(), gelu, rows, tokens);
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
  expect_gated_product<RepackedBF16, 512>(FormatId::BF16, 45, 40, 0, 132);
  expect_gated_product<RepackedF16, 256>(FormatId::F16, 96, 64, 1, 2);
  expect_gated_product<RepackedBF16, 256>(FormatId::BF16, 150, 128, 0, 1);
}

}  // namespace
}  // namespace lane::test
