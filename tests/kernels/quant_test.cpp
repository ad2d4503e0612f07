// Each format's decode on the device against the exact decode of the table of formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/format_kernels.h"
#include "kernels/random_blocks.h"
#include "lane/formats.h"

namespace lane::test {
namespace {

class Quant : public testing::TestWithParam<FormatKernels> {};

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

TEST_P(Quant, DecodesRandomBlocksExactly) {
  const Format& format = *find_format(GetParam().name);
  const size_t elements = 64 * 256, bytes = elements / size_t(format.block_elements) * size_t(format.block_bytes);
  // One byte off: a block may begin anywhere that the format's own size allows on the host.
  std::vector<uint8_t> memory = random_bytes(bytes + 1, 42);
  const uint8_t* row = memory.data() + 1;
  const std::vector<double> exact = exact_values(format, row, elements);
  for (int group = 0; group < int(elements / 32); group++) {
    float decoded[32];
    GetParam().decode(row, group, 32, decoded);
    for (int i = 0; i < 32; i++) expect_rounded_once(exact[size_t(group) * 32 + size_t(i)], decoded[i]);
    if (HasFailure()) FAIL() << "group " << group;
  }
}

/// Halves at every place where a block may hold its scale: zeros, subnormals, the greatest, infinities, NaN.
TEST_P(Quant, DecodesExtremeScalesExactly) {
  const Format& format = *find_format(GetParam().name);
  const int elements = std::max(format.block_elements, 32), blocks = elements / format.block_elements;
  const uint16_t extremes[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};
  for (uint16_t bits : extremes) {
    std::vector<uint8_t> row = random_bytes(size_t(blocks) * size_t(format.block_bytes), bits);
    for (int at : {0, 2, 80, 82, 108, 208}) {
      if (size_t(at) + 2 <= row.size()) std::memcpy(&row[size_t(at)], &bits, 2);
    }
    const std::vector<double> exact = exact_values(format, row.data(), size_t(elements));
    for (int group = 0; group < elements / 32; group++) {
      float decoded[32];
      GetParam().decode(row.data(), group, 32, decoded);
      for (int i = 0; i < 32; i++) expect_rounded_once(exact[size_t(group) * 32 + size_t(i)], decoded[i]);
    }
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
