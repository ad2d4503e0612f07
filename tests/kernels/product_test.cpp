// The products against plain loops in double, on random blocks and shapes, and against themselves: a token's result has
// the same bits whatever else the launch computes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/device_array.h"
#include "kernels/format_kernels.h"
#include "kernels/random_blocks.h"
#include "ops/product_rows.cuh"
#include "ops/row_lookup.cuh"

namespace lane::test {
namespace {

using LANE_NAMESPACE::kLookupThreads;
using LANE_NAMESPACE::kProductThreads;
using LANE_NAMESPACE::launch;

class Product : public testing::TestWithParam<FormatKernels> {
 protected:
  const Format& format() const { return *find_format(GetParam().name); }
  /// Formats of floats have rows of any length; the others of whole blocks.
  int columns_near(int wanted) const {
    const int block = GetParam().elements;
    return block == 1 ? wanted : std::max(1, wanted / block) * block;
  }
  size_t matrix_bytes(int rows, int columns) const { return size_t(rows) * format().row_bytes(uint64_t(columns)); }

  std::vector<float> product(const std::vector<uint8_t>& w, const std::vector<float>& x, int rows, int columns,
                             int tokens, unsigned blocks) const {
    DeviceArray<uint8_t> weights(w);
    DeviceArray<float> activations(x), out(size_t(rows) * size_t(tokens));
    expect_success(launch(nullptr, dim3(blocks), dim3(kProductThreads), 0, GetParam().matrix_product, out.data(),
                          weights.data(), activations.data(), rows, columns, tokens));
    return out.values();
  }
};

/// w · x in double, and the sum of the terms' magnitudes: what an error is measured by.
struct Exact {
  double value = 0, magnitude = 0;
};
Exact dot(const double* w, const float* x, int columns) {
  Exact sum;
  for (int c = 0; c < columns; c++) {
    sum.value += double(float(w[c])) * x[c];
    sum.magnitude += std::abs(w[c] * x[c]);
  }
  return sum;
}
void expect_close(const Exact& exact, float result) {
  EXPECT_LE(std::abs(double(result) - exact.value), std::abs(exact.value) * 0x1p-24 + exact.magnitude * 1e-13);
}

TEST_P(Product, AgreesWithAPlainLoop) {
  const int shapes[][3] = {{1, 32, 1}, {7, 256, 2}, {33, 700, 1}, {5, 2304, 9}, {40, 1025, 3}};
  for (const auto& [rows, wanted, tokens] : shapes) {
    const int columns = columns_near(wanted);
    const auto w = random_weights(format(), size_t(rows) * size_t(columns), uint32_t(wanted));
    const auto exact = exact_values(format(), w.data(), size_t(rows) * size_t(columns));
    const auto x = random_floats(size_t(tokens) * size_t(columns), 5);
    const auto out = product(w, x, rows, columns, tokens, 2);
    for (int t = 0; t < tokens; t++) {
      for (int r = 0; r < rows; r++) {
        expect_close(dot(&exact[size_t(r) * size_t(columns)], &x[size_t(t) * size_t(columns)], columns),
                     out[size_t(t) * size_t(rows) + size_t(r)]);
      }
    }
    if (HasFailure()) FAIL() << rows << " rows, " << columns << " columns, " << tokens << " tokens";
  }
}

TEST_P(Product, GivesATokenTheSameBitsInAnyCompanyAndGrid) {
  const int rows = 19, columns = columns_near(1300), tokens = 9;
  const auto w = random_weights(format(), size_t(rows) * size_t(columns), 3);
  const auto x = random_floats(size_t(tokens) * size_t(columns), 4);
  const auto together = product(w, x, rows, columns, tokens, 1);
  for (int t = 0; t < tokens; t++) {
    const std::vector<float> mine(x.begin() + t * columns, x.begin() + (t + 1) * columns);
    const auto alone = product(w, mine, rows, columns, 1, 3);
    EXPECT_EQ(std::memcmp(alone.data(), &together[size_t(t) * size_t(rows)], size_t(rows) * sizeof(float)), 0)
        << "token " << t;
  }
}

TEST_P(Product, HasAMatrixForEachHead) {
  const int heads = 3, rows = 10, columns = columns_near(300), tokens = 2;
  const auto w = random_weights(format(), size_t(heads) * size_t(rows) * size_t(columns), 8);
  const auto x = random_floats(size_t(tokens) * size_t(heads) * size_t(columns), 9);
  DeviceArray<uint8_t> weights(w);
  DeviceArray<float> activations(x), out(size_t(tokens) * size_t(heads) * size_t(rows));
  expect_success(launch(nullptr, dim3(1, heads), dim3(kProductThreads), 0, GetParam().head_product, out.data(),
                        weights.data(), activations.data(), heads, rows, columns, tokens));
  const auto result = out.values();
  for (int t = 0; t < tokens; t++) {
    for (int h = 0; h < heads; h++) {
      const size_t at = size_t(t) * size_t(heads) + size_t(h);
      const std::vector<uint8_t> matrix(w.begin() + ptrdiff_t(size_t(h) * matrix_bytes(rows, columns)),
                                        w.begin() + ptrdiff_t(size_t(h + 1) * matrix_bytes(rows, columns)));
      const std::vector<float> mine(x.begin() + ptrdiff_t(at) * columns, x.begin() + ptrdiff_t(at + 1) * columns);
      const auto alone = product(matrix, mine, rows, columns, 1, 1);
      EXPECT_EQ(std::memcmp(alone.data(), &result[at * size_t(rows)], size_t(rows) * sizeof(float)), 0);
    }
  }
}

TEST_P(Product, TakesTheChosenExperts) {
  const int experts = 4, rows = 6, columns = columns_near(300);
  const std::vector<int> chosen = {2, 0, 3, 2};
  const int count = int(chosen.size());
  const auto w = random_weights(format(), size_t(experts) * size_t(rows) * size_t(columns), 12);
  const auto x = random_floats(size_t(count) * size_t(columns), 13);
  DeviceArray<uint8_t> weights(w);
  DeviceArray<int> ids(chosen);
  for (int x_rows : {1, 2, 4}) {
    DeviceArray<float> activations(x), out(size_t(count) * size_t(rows));
    expect_success(launch(nullptr, dim3(1, count), dim3(kProductThreads), 0, GetParam().expert_product, out.data(),
                          weights.data(), activations.data(), ids.data(), count, rows, columns, x_rows));
    const auto result = out.values();
    for (int i = 0; i < count; i++) {
      const size_t e = size_t(chosen[size_t(i)]);
      const std::vector<uint8_t> matrix(w.begin() + ptrdiff_t(e * matrix_bytes(rows, columns)),
                                        w.begin() + ptrdiff_t((e + 1) * matrix_bytes(rows, columns)));
      const int row = i * x_rows / count;
      const std::vector<float> mine(x.begin() + row * columns, x.begin() + (row + 1) * columns);
      const auto alone = product(matrix, mine, rows, columns, 1, 1);
      EXPECT_EQ(std::memcmp(alone.data(), &result[size_t(i) * size_t(rows)], size_t(rows) * sizeof(float)), 0);
    }
  }
}

TEST_P(Product, LooksRowsUp) {
  const int rows = 5, columns = columns_near(700);
  const std::vector<int> ids = {4, 0, 4};
  const auto w = random_weights(format(), size_t(rows) * size_t(columns), 21);
  const auto exact = exact_values(format(), w.data(), size_t(rows) * size_t(columns));
  DeviceArray<uint8_t> weights(w);
  DeviceArray<int> device_ids(ids);
  DeviceArray<float> out(ids.size() * size_t(columns));
  const unsigned blocks = unsigned((columns / 32 + kLookupThreads) / kLookupThreads);
  expect_success(launch(nullptr, dim3(blocks, unsigned(ids.size())), dim3(kLookupThreads), 0, GetParam().row_lookup,
                        out.data(), weights.data(), device_ids.data(), int(ids.size()), columns));
  const auto result = out.values();
  for (size_t i = 0; i < result.size(); i++) {
    const size_t row = size_t(ids[i / size_t(columns)]);
    ASSERT_EQ(result[i], float(exact[row * size_t(columns) + i % size_t(columns)])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Product, testing::ValuesIn(format_kernels()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace lane::test
