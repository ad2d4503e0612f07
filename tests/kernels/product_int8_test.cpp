// Quantized activations and the products with them: the distance from exact products, and the same bits in any company.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/device_array.h"
#include "kernels/format_kernels.h"
#include "kernels/random_blocks.h"
#include "ops/product_rows.cuh"
#include "ops/quantize.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

template <int PLANES>
std::vector<uint8_t> quantized(const std::vector<float>& x, int rows, int columns) {
  DeviceArray<float> values(x);
  DeviceArray<uint8_t> out(x.size() / 32 * sizeof(QuantizedGroup<PLANES>));
  expect_success(launch(nullptr, 3, kQuantizeThreads, 0, quantize<PLANES>, out.data(), values.data(), rows, columns));
  return out.values();
}
std::vector<uint8_t> quantized(int planes, const std::vector<float>& x, int rows, int columns) {
  return planes == 2 ? quantized<2>(x, rows, columns) : quantized<1>(x, rows, columns);
}

template <int PLANES>
int integer_of(const QuantizedGroup<PLANES>& group, int i) {
  const int8_t* bytes = reinterpret_cast<const int8_t*>(group.plane);
  return PLANES == 2 ? 256 * bytes[i] + bytes[32 + i] : bytes[i];
}

template <int PLANES>
void expect_nearest_integers(const std::vector<float>& x) {
  const std::vector<uint8_t> bytes = quantized<PLANES>(x, 1, int(x.size()));
  for (size_t g = 0; g < x.size() / 32; g++) {
    QuantizedGroup<PLANES> group;
    std::memcpy(&group, &bytes[g * sizeof group], sizeof group);
    int sums[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
      const int integer = integer_of(group, i);
      sums[i / 16] += integer;
      const double value = x[g * 32 + size_t(i)];
      EXPECT_LE(std::abs(value - double(group.scale) * integer), double(group.scale) * 0.5001 + std::abs(value) * 1e-6);
    }
    EXPECT_EQ(group.sum[0], group.scale * float(sums[0]));
    EXPECT_EQ(group.sum[1], group.scale * float(sums[1]));
  }
}

TEST(Quantize, GivesTheNearestIntegers) {
  std::vector<float> x = random_floats(32 * 20, 1);
  x[40] = -1e6f;                                                 // one value rules its group
  for (size_t i = 64; i < 96; i++) x[i] = i % 2 ? 1.0f : -1.0f;  // the greatest, both signs
  expect_nearest_integers<1>(x);
  expect_nearest_integers<2>(x);
}

TEST(Quantize, TakesZerosAndTheTiniestForZero) {
  std::vector<float> x(64, 0.0f);
  x[40] = 1e-40f;
  for (uint8_t byte : quantized<2>(x, 1, 64)) EXPECT_EQ(byte, 0);
}

struct Mode {
  FormatKernels format;
  int planes;
  const QuantizedProducts& products() const { return planes == 2 ? format.int8x2 : format.int8; }
};
void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.format.name << " x " << mode.planes; }

std::vector<Mode> modes() {
  std::vector<Mode> all;
  for (const FormatKernels& row : format_kernels()) {
    if (row.elements > 1) all.push_back({row, 1}), all.push_back({row, 2});
  }
  return all;
}

class QuantizedProduct : public testing::TestWithParam<Mode> {
 protected:
  const Format& format() const { return *find_format(GetParam().format.name); }
  std::vector<float> product(const std::vector<uint8_t>& w, const std::vector<float>& x, int rows, int columns,
                             int tokens, unsigned blocks) const {
    DeviceArray<uint8_t> weights(w), activations(quantized(GetParam().planes, x, tokens, columns));
    DeviceArray<float> out(size_t(rows) * size_t(tokens));
    expect_success(launch(nullptr, blocks, kProductThreads, 0, GetParam().products().matrix, out.data(), weights.data(),
                          activations.data(), rows, columns, tokens));
    return out.values();
  }
};

/// Norm of the difference over norm of the exact result.
TEST_P(QuantizedProduct, StaysNearTheExactProduct) {
  const int rows = 50, columns = 1536, tokens = 3;
  const auto w = random_weights(format(), size_t(rows) * size_t(columns), 31);
  const auto exact = exact_values(format(), w.data(), size_t(rows) * size_t(columns));
  const auto x = random_floats(size_t(tokens) * size_t(columns), 32);
  const auto out = product(w, x, rows, columns, tokens, 2);
  double difference = 0, norm = 0;
  for (int t = 0; t < tokens; t++) {
    for (int r = 0; r < rows; r++) {
      double sum = 0;
      for (int c = 0; c < columns; c++) {
        sum += exact[size_t(r) * size_t(columns) + size_t(c)] * x[size_t(t) * size_t(columns) + size_t(c)];
      }
      difference += std::pow(out[size_t(t) * size_t(rows) + size_t(r)] - sum, 2);
      norm += sum * sum;
    }
  }
  EXPECT_LE(std::sqrt(difference / norm), GetParam().planes == 2 ? 1e-4 : 2e-2);
}

TEST_P(QuantizedProduct, GivesATokenTheSameBitsInAnyCompanyAndGrid) {
  const int rows = 19, columns = 1280, tokens = 9;
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

/// Heads and experts: each is the plain product of its own matrix and activation.
TEST_P(QuantizedProduct, HasAMatrixForEachHeadAndEachChosenExpert) {
  const int matrices = 3, rows = 10, columns = 256;
  const std::vector<int> chosen = {2, 0, 1};
  const auto w = random_weights(format(), size_t(matrices) * size_t(rows) * size_t(columns), 8);
  const auto x = random_floats(size_t(matrices) * size_t(columns), 9);
  DeviceArray<uint8_t> weights(w), activations(quantized(GetParam().planes, x, matrices, columns));
  DeviceArray<int> ids(chosen);
  DeviceArray<float> heads(size_t(matrices) * size_t(rows)), experts(size_t(matrices) * size_t(rows));
  const dim3 grid(1, unsigned(matrices));
  expect_success(launch(nullptr, grid, kProductThreads, 0, GetParam().products().head, heads.data(), weights.data(),
                        activations.data(), matrices, rows, columns, 1));
  expect_success(launch(nullptr, grid, kProductThreads, 0, GetParam().products().expert, experts.data(), weights.data(),
                        activations.data(), ids.data(), matrices, rows, columns, matrices));
  const auto by_head = heads.values(), by_expert = experts.values();
  const size_t bytes = size_t(rows) * format().row_bytes(uint64_t(columns));
  const auto alone = [&](int matrix, int x_row) {
    const std::vector<uint8_t> weights_of_it(w.begin() + ptrdiff_t(size_t(matrix) * bytes),
                                             w.begin() + ptrdiff_t(size_t(matrix + 1) * bytes));
    const std::vector<float> x_of_it(x.begin() + x_row * columns, x.begin() + (x_row + 1) * columns);
    return product(weights_of_it, x_of_it, rows, columns, 1, 1);
  };
  for (int i = 0; i < matrices; i++) {
    EXPECT_EQ(std::memcmp(alone(i, i).data(), &by_head[size_t(i * rows)], size_t(rows) * sizeof(float)), 0);
    EXPECT_EQ(
        std::memcmp(alone(chosen[size_t(i)], i).data(), &by_expert[size_t(i * rows)], size_t(rows) * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantizedProduct, testing::ValuesIn(modes()), [](const auto& row) {
  return std::string(row.param.format.name) + (row.param.planes == 2 ? "_int8x2" : "_int8");
});

}  // namespace
}  // namespace lane::test
