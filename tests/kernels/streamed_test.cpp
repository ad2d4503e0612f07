// The repacked layouts and the streamed products, whose portable bodies run on the host chip: every weight comes back
// exactly, products stay near a plain loop in double, and bits do not depend on the grid.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernels/repacked_matrix.h"
#include "layout/all.cuh"
#include "ops/streamed_product.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

/// Every weight of a repacked matrix, row by row; a block of 32 a thread.
template <class L>
__global__ void unpack_matrix(double* out, const uint8_t* repacked, int rows, int columns) {
  const int row_blocks = columns / kBlockColumns, task = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (task >= rows * row_blocks) return;
  const int row_index = task / row_blocks, b = task % row_blocks;
  const Slices s = slices(columns);
  const int slice = b / s.full, blocks = slice == s.count - 1 ? s.last : s.full;
  const uint8_t* row = repacked + slice_offset(L::kBytes256, size_t(rows), s, slice) +
                       size_t(row_index) * size_t(slice_row_bytes(L::kBytes256, blocks));
  double* to = out + size_t(task) * kBlockColumns;
  if constexpr (L::kFloat) {
    float w[32];
    L::decode(row, blocks, b % s.full, w);
    for (int i = 0; i < 32; i++) to[i] = w[i];
  } else {
    const UnpackedBlock u = L::unpack(row, blocks, b % s.full);
    for (int i = 0; i < 32; i++) to[i] = double(u.scale[i / 16]) * u.code[i] - double(u.minimum[i / 16]);
  }
}

template <class L>
std::vector<double> unpacked(const Matrix<L>& m) {
  const DeviceArray<double> out(m.elements);
  const unsigned blocks = unsigned(m.elements / kBlockColumns + 63) / 64;
  expect_success(
      launch(nullptr, dim3(blocks), dim3(64), 0, unpack_matrix<L>, out.data(), m.repacked.data(), m.rows, m.columns));
  return out.values();
}

template <class L>
void expect_exact(FormatId id, std::initializer_list<int> columns) {
  for (int c : columns) {
    const Matrix<L> m(id, 7, c, uint32_t(c));
    const auto got = unpacked(m);
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); i++) wrong += got[i] != m.weights[i];
    EXPECT_EQ(wrong, 0u) << format(id).name << ", " << c << " columns";
  }
}

TEST(Repacked, KeepsEveryWeightOfKQuants) {
  expect_exact<RepackedQ4_K>(FormatId::Q4_K, {256, 2048, 1280});
  expect_exact<RepackedQ6_K>(FormatId::Q6_K, {256, 2048, 1280});
  expect_exact<RepackedQ3_K>(FormatId::Q3_K, {256, 2048, 1280});
  expect_exact<RepackedQ5_K>(FormatId::Q5_K, {256, 2048, 1280});
  expect_exact<RepackedIQ4_XS>(FormatId::IQ4_XS, {256, 2048, 1280});
}
TEST(Repacked, KeepsEveryWeightOfSmallBlocks) {
  expect_exact<RepackedQ5_0>(FormatId::Q5_0, {128, 896, 1152});
  expect_exact<RepackedQ8_0>(FormatId::Q8_0, {128, 896, 1152});
  expect_exact<RepackedQ4_0>(FormatId::Q4_0, {128, 896, 1152});
  expect_exact<RepackedQ4_1>(FormatId::Q4_1, {128, 896, 1152});
  expect_exact<RepackedQ5_1>(FormatId::Q5_1, {128, 896, 1152});
  expect_exact<RepackedIQ4_NL>(FormatId::IQ4_NL, {128, 896, 1152});
}
TEST(Repacked, KeepsEveryFloat) {
  expect_exact<RepackedF16>(FormatId::F16, {128, 1152});
  expect_exact<RepackedBF16>(FormatId::BF16, {128, 1152});
}

TEST(Repacked, TakesTheFilesBytes) {
  EXPECT_EQ(repacked_bytes(RepackedQ4_K::kBytes256, 100, 2048), 100 * format(FormatId::Q4_K).row_bytes(2048));
  EXPECT_LE(repacked_bytes(RepackedQ6_K::kBytes256, 100, 2048), 100 * (format(FormatId::Q6_K).row_bytes(2048) + 32));
}

std::vector<double> normed(const std::vector<float>& x, const std::vector<float>& norm, float epsilon) {
  double squares = 0;
  for (float v : x) squares += double(v) * double(v);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < y.size(); i++)
    y[i] = x[i] * double(norm[i]) / std::sqrt(squares / double(x.size()) + double(epsilon));
  return y;
}

/// Both grids' results have the same bits; their distance from `expected`, as a share of its size, is at most `bound`.
void expect_near(const std::vector<double>& expected, double bound,
                 const std::function<std::vector<float>(int grid)>& run) {
  const std::vector<float> got = run(3), other = run(8);
  EXPECT_EQ(0, memcmp(got.data(), other.data(), 4 * got.size()));
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    difference += (double(got[i]) - expected[i]) * (double(got[i]) - expected[i]);
    size += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(difference / size), bound);
}

constexpr int kSharedLimit = 96 * 1024;
constexpr float kEpsilon = 1e-6f;

template <class L, int Columns, int Words>
void expect_product(FormatId id, int rows, double bound) {
  SCOPED_TRACE(format(id).name);
  const Matrix<L> m(id, rows, Columns, 3);
  const auto x = random_floats(Columns, 4), norm = random_floats(Columns, 5), bias = random_floats(size_t(rows), 6);
  const DeviceArray<float> dx(x), dn(norm), db(bias);
  std::vector<double> expected = m.times(normed(x, norm, kEpsilon));
  for (size_t i = 0; i < expected.size(); i++) expected[i] += 2 * double(bias[i]);  // once as bias, once as residual
  expect_near(expected, bound, [&](int grid) {
    const StreamedMatrix shape{L::kBytes256, rows};
    const StreamedGeometry g = streamed_geometry(Columns, &shape, 1, false, Words, grid, kSharedLimit);
    DeviceArray<float> out(static_cast<size_t>(rows));
    const auto kernel = streamed_product<L, Columns, Words>;
    expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, g.shared_bytes));
    expect_success(launch_dependent(nullptr, dim3(unsigned(g.grid)), dim3(unsigned(g.threads)), size_t(g.shared_bytes),
                                    kernel, out.data(), m.repacked.data(), dx.data(), dn.data(), kEpsilon, db.data(),
                                    db.data(), rows, g.share[0].rows_per_block, g.share[0].ring));
    return out.values();
  });
}

TEST(StreamedProduct, IsNearAPlainLoop) {
  expect_product<RepackedQ4_K, 256, 2>(FormatId::Q4_K, 37, 1e-4);
  expect_product<RepackedQ4_K, 2048, 1>(FormatId::Q4_K, 21, 3e-2);
  expect_product<RepackedQ6_K, 1280, 2>(FormatId::Q6_K, 2, 2e-4);
  expect_product<RepackedQ5_0, 1152, 2>(FormatId::Q5_0, 75, 1e-4);
  expect_product<RepackedQ8_0, 896, 2>(FormatId::Q8_0, 150, 1e-4);
  expect_product<RepackedQ8_0, 896, 2>(FormatId::Q8_0, 600, 1e-4);  // a ring of one slot, filled again and again
  expect_product<RepackedQ3_K, 256, 2>(FormatId::Q3_K, 37, 2e-4);
  expect_product<RepackedQ5_K, 512, 2>(FormatId::Q5_K, 21, 2e-4);
  expect_product<RepackedIQ4_XS, 256, 2>(FormatId::IQ4_XS, 21, 2e-4);
  expect_product<RepackedQ4_0, 128, 2>(FormatId::Q4_0, 21, 2e-4);
  expect_product<RepackedQ4_1, 384, 2>(FormatId::Q4_1, 21, 2e-4);
  expect_product<RepackedQ5_1, 256, 2>(FormatId::Q5_1, 21, 2e-4);
  expect_product<RepackedIQ4_NL, 256, 2>(FormatId::IQ4_NL, 21, 2e-4);
  expect_product<RepackedBF16, 640, 0>(FormatId::BF16, 33, 1e-6);
  expect_product<RepackedF16, 1152, 0>(FormatId::F16, 33, 1e-6);
}

TEST(StreamedProduct, GatesTwoMatrices) {
  constexpr int kColumns = 1152, kRows = 45;
  const Matrix<RepackedQ8_0> gate(FormatId::Q8_0, kRows, kColumns, 3), up(FormatId::Q8_0, kRows, kColumns, 4);
  const auto x = random_floats(kColumns, 5);
  std::vector<float> norm(kColumns, 1e-6f);  // the weights are large: keep the gate's sums where its curve is
  const DeviceArray<float> dx(x), dn(norm);
  const auto g = gate.times(normed(x, norm, kEpsilon)), u = up.times(normed(x, norm, kEpsilon));
  for (int gelu : {0, 1}) {
    std::vector<double> expected(kRows);
    for (size_t i = 0; i < kRows; i++) {
      const double t = std::tanh(std::sqrt(2 / M_PI) * (g[i] + 0.044715 * g[i] * g[i] * g[i]));
      expected[i] = u[i] * (gelu ? 0.5 * g[i] * (1 + t) : g[i] / (1 + std::exp(-g[i])));
    }
    expect_near(expected, 2e-4, [&](int grid) {
      const StreamedMatrix shape{RepackedQ8_0::kBytes256, kRows};
      const StreamedGeometry geometry = streamed_geometry(kColumns, &shape, 1, true, 2, grid, kSharedLimit);
      DeviceArray<float> out(kRows);
      const auto kernel = streamed_gated_product<RepackedQ8_0, kColumns, 2>;
      expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, geometry.shared_bytes));
      expect_success(launch_dependent(nullptr, dim3(unsigned(geometry.grid)), dim3(unsigned(geometry.threads)),
                                      size_t(geometry.shared_bytes), kernel, out.data(), gate.repacked.data(),
                                      up.repacked.data(), dx.data(), dn.data(), kEpsilon, gelu, kRows,
                                      geometry.share[0].rows_per_block, geometry.share[0].ring));
      return out.values();
    });
  }
}

TEST(StreamedProduct, ComputesThreeMatricesOfTwoFormats) {
  constexpr int kColumns = 512;
  const Matrix<RepackedQ4_K> q(FormatId::Q4_K, 64, kColumns, 3), k(FormatId::Q4_K, 16, kColumns, 4);
  const Matrix<RepackedQ6_K> v(FormatId::Q6_K, 17, kColumns, 5);
  const auto x = random_floats(kColumns, 6), bias = random_floats(97, 7);
  const DeviceArray<float> dx(x), db(bias);
  std::vector<double> plain(x.begin(), x.end()), expected = q.times(plain);
  for (double value : k.times(plain)) expected.push_back(value);
  for (double value : v.times(plain)) expected.push_back(value);
  for (size_t i = 0; i < expected.size(); i++) expected[i] += double(bias[i]);
  expect_near(expected, 2e-4, [&](int grid) {
    const StreamedMatrix shapes[] = {
        {RepackedQ4_K::kBytes256, 64}, {RepackedQ4_K::kBytes256, 16}, {RepackedQ6_K::kBytes256, 17}};
    const StreamedGeometry g = streamed_geometry(kColumns, shapes, 3, false, 2, grid, kSharedLimit);
    const auto& s = g.share;
    DeviceArray<float> out(97);
    const auto kernel = streamed_products<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, kColumns, 2>;
    expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, g.shared_bytes));
    const float* none = nullptr;
    expect_success(launch_dependent(
        nullptr, dim3(unsigned(g.grid)), dim3(unsigned(g.threads)), size_t(g.shared_bytes), kernel, out.data(),
        out.data() + 64, out.data() + 80, q.repacked.data(), k.repacked.data(), v.repacked.data(), dx.data(), none,
        kEpsilon, db.data(), db.data() + 64, db.data() + 80, 64, 16, 17, s[0].blocks, s[1].blocks, s[2].blocks,
        s[0].rows_per_block, s[1].rows_per_block, s[2].rows_per_block, s[0].ring, s[1].ring, s[2].ring));
    return out.values();
  });
}

TEST(StreamedGeometry, SplitsEveryRowOnceAndFitsTheChip) {
  constexpr int kLimit = 227 * 1024;
  for (int columns : {128, 640, 896, 2048, 4096, 4864, 8192, 14336, 28672}) {
    for (int rows : {1, 131, 896, 4096, 128256}) {
      ASSERT_TRUE(streamed_fits(columns, false)) << columns;
      const StreamedMatrix m{210, rows};
      const StreamedGeometry g = streamed_geometry(columns, &m, 1, false, 2, 132, kLimit);
      const int more = rows - g.share[0].rows_per_block * g.share[0].blocks;
      EXPECT_TRUE(more >= 0 && more < g.share[0].blocks) << columns << " x " << rows;
      EXPECT_LE(g.shared_bytes + streamed_static_bytes(g.threads / 32), kLimit) << columns << " x " << rows;
      EXPECT_GE(g.share[0].ring, 1);
    }
  }
  // Floats of 14,336 columns take 56 KiB, and a slot for each of 14 warps as much again.
  const StreamedMatrix long_rows{512, 4096};
  EXPECT_TRUE(has_shared(streamed_geometry(14336, &long_rows, 1, false, 0, 132, kLimit), kLimit));
  EXPECT_FALSE(has_shared(streamed_geometry(14336, &long_rows, 1, false, 0, 170, 99 * 1024), 99 * 1024));
  EXPECT_FALSE(streamed_fits(100, false));
  EXPECT_FALSE(streamed_fits(65536, false));
}

}  // namespace
}  // namespace lane::test
