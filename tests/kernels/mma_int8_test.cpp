// Products of quantized weights as stored, on integer tensor cores, have the bits of the products by integer dot
// products: every format, both kinds of integers, any number of tokens and rows, columns of any number of groups.
#include <gtest/gtest.h>

#include "kernels/device_array.h"
#include "kernels/random_blocks.h"
#include "ops/mma_int8_product.cuh"
#include "quant/all.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

/// Tokens' quantized activations, and what is added to a product.
template <int PLANES>
struct Inputs {
  Inputs(int columns, int rows, int token_count)
      : tokens(token_count),
        x(size_t(token_count * columns / kGroup) * sizeof(QuantizedGroup<PLANES>)),
        bias(random_floats(size_t(rows), 6)),
        residual(random_floats(size_t(token_count * rows), 7)) {
    const DeviceArray<float> floats(random_floats(size_t(token_count * columns), 4));
    run_kernel(quantize<PLANES>, dim3(3), kQuantizeThreads, 0, x.data(), floats.data(), token_count, columns);
  }
  int tokens;
  DeviceArray<uint8_t> x;
  DeviceArray<float> bias, residual;
};

template <class Q, int PLANES>
std::vector<float> dot_products(const DeviceArray<uint8_t>& w, const Inputs<PLANES>& in, int rows, int columns) {
  const DeviceArray<float> out(size_t(in.tokens * rows));
  const auto kernel = PLANES == 2 ? matrix_product_int8x2<Q> : matrix_product_int8<Q>;
  run_kernel(kernel, dim3(2), kProductThreads, 0, out.data(), w.data(), in.x.data(), rows, columns, in.tokens);
  return out.values();
}

dim3 grid_of(int rows, int tokens) {
  const int of_block = mma_int8_tokens(tokens);
  return dim3(unsigned((tokens + of_block - 1) / of_block), unsigned((rows + kInt8Rows - 1) / kInt8Rows));
}

template <class Q, int PLANES, int TOKENS>
void expect_bits(FormatId id, int rows, int columns, int tokens) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(tokens) + " tokens");
  ASSERT_EQ(mma_int8_tokens(tokens), TOKENS);
  const DeviceArray<uint8_t> w(random_weights(format(id), size_t(rows * columns), 3));
  const Inputs<PLANES> in(columns, rows, tokens);
  const std::vector<float> expected = dot_products<Q>(w, in, rows, columns), bias = in.bias.values(),
                           residual = in.residual.values();
  const DeviceArray<float> plain(expected.size()), added(expected.size());
  const auto run = [&](const DeviceArray<float>& out, const float* b, const float* r) {
    run_kernel(mma_int8_product<Q, PLANES, TOKENS>, grid_of(rows, tokens), kInt8Threads, mma_int8_shared_bytes(TOKENS),
               out.data(), w.data(), b, r, in.x.data(), rows, columns, tokens);
    return out.values();
  };
  const std::vector<float> alone = run(plain, nullptr, nullptr), more = run(added, in.bias.data(), in.residual.data());
  for (size_t i = 0; i < expected.size(); i++) {
    ASSERT_EQ(alone[i], expected[i]) << i;
    ASSERT_EQ(more[i], expected[i] + bias[i % size_t(rows)] + residual[i]) << i;
  }
}

TEST(MmaInt8Product, HasTheBitsOfDotProductsInEveryFormat) {
  expect_bits<Q4_0, 2, 16>(FormatId::Q4_0, 21, 1056, 9);
  expect_bits<Q4_1, 2, 16>(FormatId::Q4_1, 16, 96, 16);
  expect_bits<Q5_0, 2, 32>(FormatId::Q5_0, 37, 896, 35);
  expect_bits<Q5_1, 2, 16>(FormatId::Q5_1, 5, 2304, 12);
  expect_bits<Q8_0, 2, 32>(FormatId::Q8_0, 33, 32, 64);
  expect_bits<Q2_K, 2, 16>(FormatId::Q2_K, 17, 1280, 11);
  expect_bits<Q3_K, 2, 16>(FormatId::Q3_K, 19, 256, 16);
  expect_bits<Q4_K, 2, 32>(FormatId::Q4_K, 45, 2304, 17);
  expect_bits<Q5_K, 2, 16>(FormatId::Q5_K, 1, 512, 10);
  expect_bits<Q6_K, 2, 32>(FormatId::Q6_K, 40, 1024, 33);
  expect_bits<IQ4_NL, 2, 16>(FormatId::IQ4_NL, 18, 160, 13);
  expect_bits<IQ4_XS, 2, 16>(FormatId::IQ4_XS, 16, 768, 9);
  expect_bits<MXFP4, 2, 16>(FormatId::MXFP4, 30, 1088, 14);
}

TEST(MmaInt8Product, HasThemWithOneByteAndWithFewTokens) {
  expect_bits<Q4_K, 1, 32>(FormatId::Q4_K, 20, 1280, 40);
  expect_bits<Q6_K, 1, 16>(FormatId::Q6_K, 20, 256, 16);
  expect_bits<Q5_0, 2, 8>(FormatId::Q5_0, 33, 1184, 3);
}

template <class Q, int PLANES, int TOKENS>
void expect_bits_by_head(FormatId id, int heads, int rows, int columns, int tokens) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(tokens) + " tokens");
  const DeviceArray<uint8_t> w(random_weights(format(id), size_t(heads * rows * columns), 3));
  const Inputs<PLANES> in(columns, rows, tokens * heads);
  const DeviceArray<float> expected(size_t(tokens * heads * rows)), out(size_t(tokens * heads * rows));
  const auto dots = PLANES == 2 ? head_product_int8x2<Q> : head_product_int8<Q>;
  run_kernel(dots, dim3(2, unsigned(heads)), kProductThreads, 0, expected.data(), w.data(), in.x.data(), heads, rows,
             columns, tokens);
  const dim3 grid = grid_of(rows, tokens);
  run_kernel(mma_int8_head_product<Q, PLANES, TOKENS>, dim3(grid.x * unsigned(heads), grid.y), kInt8Threads,
             mma_int8_shared_bytes(TOKENS), out.data(), w.data(), in.x.data(), heads, rows, columns, tokens);
  EXPECT_EQ(out.values(), expected.values());
}
TEST(MmaInt8Product, OfHeadsHasTheBitsOfDotProducts) {
  expect_bits_by_head<Q8_0, 2, 16>(FormatId::Q8_0, 3, 37, 96, 13);
  expect_bits_by_head<Q4_K, 2, 32>(FormatId::Q4_K, 2, 16, 512, 40);
  expect_bits_by_head<Q5_0, 1, 32>(FormatId::Q5_0, 5, 20, 128, 33);
}

TEST(MmaInt8Product, GatesWithTheBitsOfBothProducts) {
  const int rows = 35, columns = 768, tokens = 18;
  const DeviceArray<uint8_t> gate(random_weights(format(FormatId::Q4_K), size_t(rows * columns), 3)),
      up(random_weights(format(FormatId::Q6_K), size_t(rows * columns), 4));
  const Inputs<2> in(columns, rows, tokens);
  const std::vector<float> g = dot_products<Q4_K>(gate, in, rows, columns),
                           u = dot_products<Q6_K>(up, in, rows, columns);
  const DeviceArray<float> g_values(g), u_values(u), expected(g.size()), out(g.size());
  run_kernel(LANE_NAMESPACE::gate<SiluGate>, dim3(3), 256, 0, expected.data(), g_values.data(), u_values.data(),
             int(g.size()), 0.f, 0.f);
  run_kernel(mma_int8_gated_product<Q4_K, Q6_K, SiluGate, 2, 32>, grid_of(rows, tokens), kInt8Threads,
             mma_int8_shared_bytes(32), out.data(), gate.data(), up.data(), in.x.data(), 0.f, 0.f, rows, columns,
             tokens);
  EXPECT_EQ(out.values(), expected.values());
}

}  // namespace
}  // namespace lane::test
