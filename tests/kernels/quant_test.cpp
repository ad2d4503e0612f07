// Each format's decode on the device against the exact decode of the table of formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/device_array.h"
#include "kernels/format_kernels.h"
#include "kernels/random_blocks.h"
#include "lane/formats.h"

namespace lane::test {
namespace {

#if defined(__CUDACC__)
constexpr size_t kFirstByte = 0;  // a GPU reads at the alignment that the format's own size gives
#else
constexpr size_t kFirstByte = 1;  // on the host a block may begin anywhere
#endif

class Quant : public testing::TestWithParam<FormatKernels> {};

std::vector<float> decoded(const FormatKernels& kernels, const std::vector<uint8_t>& row, size_t elements) {
  constexpr unsigned kThreads = 64;
  std::vector<uint8_t> bytes(kFirstByte);
  bytes.insert(bytes.end(), row.begin(), row.end());
  const DeviceArray<uint8_t> memory(bytes);
  const DeviceArray<float> weights(elements);
  const unsigned groups = unsigned(elements / 32);
  expect_success(LANE_NAMESPACE::launch(nullptr, dim3((groups + kThreads - 1) / kThreads), dim3(kThreads), 0,
                                        kernels.decode, weights.data(), memory.data() + kFirstByte, int(groups)));
  return weights.values();
}

/// The exact value, rounded once: what the kernels promise. A comparison of bits, but for NaN.
void expect_rounded_once(double exact, float decoded) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(rounded))
    EXPECT_TRUE(std::isnan(decoded));
  else
    EXPECT_EQ(rounded, decoded);
}

TEST_P(Quant, HasTheTablesBlock) {
  const Format* row = find_format(GetParam().name);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->block_elements, GetParam().elements);
  EXPECT_EQ(row->block_bytes, GetParam().bytes);
}

void expect_exact(const FormatKernels& kernels, const Format& format, const std::vector<uint8_t>& row,
                  size_t elements) {
  const std::vector<double> exact = exact_values(format, row.data(), elements);
  const std::vector<float> weights = decoded(kernels, row, elements);
  for (size_t i = 0; i < elements; i++) {
    expect_rounded_once(exact[i], weights[i]);
    if (testing::Test::HasFailure()) FAIL() << "weight " << i;
  }
}

TEST_P(Quant, DecodesRandomBlocksExactly) {
  const Format& format = *find_format(GetParam().name);
  const size_t elements = 64 * 256;
  expect_exact(GetParam(), format, random_bytes(format.row_bytes(elements), 42), elements);
}

/// Halves at every place where a block may hold its scale: zeros, subnormals, the greatest, infinities, NaN.
TEST_P(Quant, DecodesExtremeScalesExactly) {
  const Format& format = *find_format(GetParam().name);
  const size_t elements = size_t(std::max(format.block_elements, 32));
  const uint16_t extremes[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};
  for (uint16_t bits : extremes) {
    std::vector<uint8_t> row = random_bytes(format.row_bytes(elements), bits);
    for (int at : {0, 2, 80, 82, 108, 208}) {
      if (size_t(at) + 2 <= row.size()) std::memcpy(&row[size_t(at)], &bits, 2);
    }
    expect_exact(GetParam(), format, row, elements);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Quant, testing::ValuesIn(format_kernels()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Quant, EveryFormatWithAKernelFileIsTried) {
  for (const Format& row : formats()) {
    const bool tried = std::any_of(format_kernels().begin(), format_kernels().end(),
                                   [&](const FormatKernels& kernels) { return kernels.name == row.name; });
    EXPECT_EQ(tried, !row.kernel.empty()) << row.name;
  }
}

}  // namespace
}  // namespace lane::test
