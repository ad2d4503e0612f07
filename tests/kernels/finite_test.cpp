// Weights that are no numbers, found in every format: the first one's index, as the exact decode has it.
#include "ops/finite.cuh"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/device_array.h"
#include "kernels/random_blocks.h"
#include "quant/all.cuh"

namespace lane::test {
namespace {

namespace program = LANE_NAMESPACE;

struct Row {
  std::string_view name;
  void (*first_not_finite)(unsigned long long* first, const uint8_t* stored, int64_t begin, int64_t count);
};
#define LANE_ROW(FORMAT) \
  Row { #FORMAT, program::first_not_finite < program::FORMAT> }
const Row kRows[] = {LANE_ROW(F32),  LANE_ROW(F16),   LANE_ROW(BF16),   LANE_ROW(Q4_0),  LANE_ROW(Q4_1), LANE_ROW(Q5_0),
                     LANE_ROW(Q5_1), LANE_ROW(Q8_0),  LANE_ROW(Q2_K),   LANE_ROW(Q3_K),  LANE_ROW(Q4_K), LANE_ROW(Q5_K),
                     LANE_ROW(Q6_K), LANE_ROW(MXFP4), LANE_ROW(IQ4_NL), LANE_ROW(IQ4_XS)};

constexpr uint64_t kNone = ~uint64_t{0};

uint64_t first_found(const Row& row, const std::vector<uint8_t>& blocks, size_t elements, int64_t begin = 0) {
  constexpr unsigned kThreads = 64;
  const DeviceArray<uint8_t> stored(blocks);
  const DeviceArray<unsigned long long> first(1);  // all bits set: none
  const unsigned groups = unsigned((elements + 31) / 32);
  expect_success(program::launch(nullptr, dim3((groups + kThreads - 1) / kThreads), dim3(kThreads), 0,
                                 row.first_not_finite, first.data(), stored.data(), begin, int64_t(elements)));
  return first.values()[0];
}

uint64_t first_exactly(const Format& format, const std::vector<uint8_t>& blocks, size_t elements) {
  const std::vector<double> values = exact_values(format, blocks.data(), elements);
  for (size_t i = 0; i < elements; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return kNone;
}

class Finite : public testing::TestWithParam<Row> {
 protected:
  const Format& format_ = *find_format(GetParam().name);
  static constexpr size_t kElements = 32 * 256;
  std::vector<uint8_t> blocks_ = random_weights(format_, kElements, 5);
};

TEST_P(Finite, SoundWeightsPass) { EXPECT_EQ(first_found(GetParam(), blocks_, kElements), kNone); }

/// NaN and infinities at every even byte of a block in turn: where it is a scale or a weight, it is found.
TEST_P(Finite, APlantedOneIsFoundWhereTheExactDecodeHasIt) {
  const size_t block = size_t(format_.block_bytes), at = 1000 / size_t(format_.block_elements) * block;
  int found = 0;
  for (const uint16_t bits : {0x7e00, 0x7c00, 0xfc00, 0xff80, 0x7fc0}) {
    for (size_t byte = 0; byte + 2 <= std::max<size_t>(block, 4); byte += 2) {
      std::vector<uint8_t> damaged = blocks_;
      std::memcpy(&damaged[at + byte], &bits, sizeof bits);
      const uint64_t expected = first_exactly(format_, damaged, kElements);
      ASSERT_EQ(first_found(GetParam(), damaged, kElements), expected) << bits << " at byte " << byte;
      found += expected != kNone;
    }
  }
  EXPECT_TRUE(found > 0 || GetParam().name == "MXFP4");
}

INSTANTIATE_TEST_SUITE_P(Formats, Finite, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Finite, EveryFormatIsTried) {
  for (const Format& row : formats()) {
    const bool tried = std::ranges::any_of(kRows, [&](const Row& r) { return r.name == row.name; });
    EXPECT_EQ(tried, !row.kernel.empty()) << row.name;
  }
}

TEST(Finite, AnExponentOf255IsNoNumber) {
  const Format& format = *find_format("MXFP4");
  std::vector<uint8_t> blocks(3 * 17, 100);
  const Row& row = *std::ranges::find(kRows, "MXFP4", &Row::name);
  EXPECT_EQ(first_found(row, blocks, 96), kNone);
  blocks[size_t(format.block_bytes)] = 255;
  EXPECT_EQ(first_found(row, blocks, 96), 32u);
}

TEST(Finite, IndicesCountFromTheMatrixAndARowsEndIsNotPassed) {
  std::vector<uint8_t> floats(40 * 2 + 2, 0);
  const Row& row = *std::ranges::find(kRows, "F16", &Row::name);
  floats[81] = 0x7e;  // behind the last weight
  EXPECT_EQ(first_found(row, floats, 40, 7000), kNone);
  floats[2 * 39 + 1] = 0x7e;
  EXPECT_EQ(first_found(row, floats, 40, 7000), 7039u);
}

}  // namespace
}  // namespace lane::test
