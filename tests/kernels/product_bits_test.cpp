// The products' bits, as digests: the same from a C++ compiler and from nvcc, with or without vector instructions. A
// deliberate change of an order of sums changes them; the failing test prints the new ones.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "kernels/device_array.h"
#include "kernels/format_kernels.h"
#include "kernels/random_blocks.h"
#include "ops/product_rows.cuh"
#include "ops/quantize.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

constexpr int kRows = 37, kColumns = 2304, kTokensTried = 3;

/// FNV-1a over the bytes of the results.
uint32_t digest(const std::vector<float>& values) {
  uint32_t hash = 2166136261u;
  for (float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    for (int i = 0; i < 4; i++) hash = (hash ^ (bits >> (8 * i) & 255u)) * 16777619u;
  }
  return hash;
}

template <class Kernel, class X>
uint32_t digest_of(Kernel kernel, const std::vector<uint8_t>& w, const DeviceArray<X>& x) {
  DeviceArray<uint8_t> weights(w);
  DeviceArray<float> out(size_t(kRows) * kTokensTried);
  expect_success(launch(nullptr, 4, kProductThreads, 0, kernel, out.data(), weights.data(), x.data(), kRows, kColumns,
                        kTokensTried));
  return digest(out.values());
}

template <int PLANES>
uint32_t digest_of_quantized(const QuantizedProducts& products, const std::vector<uint8_t>& w,
                             const DeviceArray<float>& x) {
  if (!products.matrix) return 0;
  DeviceArray<uint8_t> groups(sizeof(QuantizedGroup<PLANES>) * kColumns / 32 * kTokensTried);
  expect_success(
      launch(nullptr, 3, kQuantizeThreads, 0, quantize<PLANES>, groups.data(), x.data(), kTokensTried, kColumns));
  return digest_of(products.matrix, w, groups);
}

struct Digests {
  uint32_t floats, int8x2, int8;
  bool operator==(const Digests&) const = default;
};
void PrintTo(const Digests& d, std::ostream* out) {
  char text[64];
  std::snprintf(text, sizeof text, "{0x%08xu, 0x%08xu, 0x%08xu}", d.floats, d.int8x2, d.int8);
  *out << text;
}

const std::map<std::string_view, Digests>& expected() {
  static const std::map<std::string_view, Digests> digests = {
      {"F32", {0x1a51af35u, 0x00000000u, 0x00000000u}},    {"F16", {0x5b07a749u, 0x00000000u, 0x00000000u}},
      {"BF16", {0x5bd016a6u, 0x00000000u, 0x00000000u}},   {"Q4_0", {0xb5ceb2e1u, 0xee6e8faeu, 0x88ab3975u}},
      {"Q4_1", {0x9f345bdfu, 0x27d85575u, 0xb42bec83u}},   {"Q5_0", {0x25a0990eu, 0x3ebd66c0u, 0x49230289u}},
      {"Q5_1", {0xcaf8d3b5u, 0x84dfa2edu, 0xf3be4a4eu}},   {"Q8_0", {0x3d9ccd3fu, 0x56e1c029u, 0x5df3a734u}},
      {"Q2_K", {0xe5852936u, 0xaddf9faeu, 0xedef6ecdu}},   {"Q3_K", {0xd9782fa5u, 0x4da42d54u, 0x2727221bu}},
      {"Q4_K", {0x19c0277eu, 0xd0e24569u, 0xf972b82cu}},   {"Q5_K", {0xf804aa03u, 0xc27f11fau, 0xc6002797u}},
      {"Q6_K", {0x3cc7d6ecu, 0xa0b4a8feu, 0x110e644du}},   {"IQ4_NL", {0x973b0130u, 0xa646a77bu, 0x234d2983u}},
      {"IQ4_XS", {0x6f3513ddu, 0xcfddaf9eu, 0x00979a33u}}, {"MXFP4", {0x63a02e47u, 0x7d75d29bu, 0xa81fb159u}},
  };
  return digests;
}

class ProductBits : public testing::TestWithParam<FormatKernels> {};

TEST_P(ProductBits, AreTheSameOnEveryChip) {
  const FormatKernels& kernels = GetParam();
  const auto w = random_weights(*find_format(kernels.name), size_t(kRows) * kColumns, 77);
  const DeviceArray<float> x(random_floats(size_t(kTokensTried) * kColumns, 78));
  const Digests found = {digest_of(kernels.matrix_product, w, x), digest_of_quantized<2>(kernels.int8x2, w, x),
                         digest_of_quantized<1>(kernels.int8, w, x)};
  EXPECT_EQ(found, expected().at(kernels.name));
}

INSTANTIATE_TEST_SUITE_P(Formats, ProductBits, testing::ValuesIn(format_kernels()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace lane::test
