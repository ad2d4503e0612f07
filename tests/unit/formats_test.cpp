// The table of tensor formats: each decode by hand and against vectors made with llama.cpp's Python package, whose
// dequantizers were run in double.
#include "lane/formats.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "support/files.h"

namespace lane {
namespace {

using test::read_file;
using test::test_path;

std::vector<double> decoded(const Format& format, const std::vector<uint8_t>& bytes) {
  std::vector<double> values(bytes.size() / size_t(format.block_bytes) * size_t(format.block_elements));
  format.decode(reinterpret_cast<const std::byte*>(bytes.data()), values.size(), values.data());
  return values;
}
std::vector<double> decoded(FormatId id, const std::vector<uint8_t>& bytes) { return decoded(format(id), bytes); }

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); i += 2) bytes.push_back(uint8_t(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// A block of zeros but for the bytes given as {place, value}.
std::vector<uint8_t> block(FormatId id, std::initializer_list<std::array<int, 2>> bytes) {
  std::vector<uint8_t> out(size_t(format(id).block_bytes));
  for (const auto& [place, value] : bytes) out[size_t(place)] = uint8_t(value);
  return out;
}

TEST(Formats, RowsAreOrderedAndFound) {
  const Format* before = nullptr;
  for (const Format& row : formats()) {
    if (before) {
      EXPECT_LT(before->id, row.id);
    }
    EXPECT_EQ(find_format(row.id), &row);
    EXPECT_EQ(find_format(row.name), &row);
    EXPECT_EQ(row.supported(), !row.kernel.empty()) << row.name;
    before = &row;
  }
}

TEST(Formats, RemovedAndUnknownIdsHaveNoRow) {
  for (const int id : {-1, 4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, std::numeric_limits<int>::max()})
    EXPECT_EQ(find_format(id), nullptr) << id;
  EXPECT_EQ(find_format("Q4_2"), nullptr);
}

TEST(Formats, EverySupportedBlockFormatHasAVector) {
  const auto vectors = nlohmann::json::parse(read_file(test_path("golden/formats/vectors.json")));
  std::set<std::string> tried;
  for (const auto& [name, vector] : vectors.items()) {
    const Format* row = find_format(name);
    ASSERT_TRUE(row && row->supported()) << name;
    EXPECT_EQ(decoded(*row, from_hex(vector.at("blocks"))), vector.at("values").get<std::vector<double>>()) << name;
    tried.insert(name);
  }
  for (const Format& row : formats())
    if (row.supported() && row.block_elements > 1) {
      EXPECT_TRUE(tried.contains(std::string(row.name))) << row.name;
    }
}

TEST(Formats, EverySupportedFormatHasItsKernelFile) {
  for (const Format& row : formats()) {
    if (!row.supported()) continue;
    const std::string text = read_file(std::filesystem::path(LANE_SOURCE_DIR) / "kernels" / row.kernel);
    EXPECT_NE(text.find("struct " + std::string(row.name)), text.npos) << row.kernel << " has no struct " << row.name;
  }
}

TEST(Formats, PlainFloatsAreExact) {
  EXPECT_EQ(decoded(FormatId::F32, {0xCD, 0xCC, 0xCC, 0x3D}), std::vector{double(0.1f)});
  EXPECT_EQ(decoded(FormatId::BF16, {0x80, 0x3F, 0x40, 0xC0}), (std::vector{1.0, -3.0}));
  EXPECT_EQ(decoded(FormatId::F16, {0x00, 0x3C, 0x00, 0xC0, 0x01, 0x00, 0xFF, 0x7B}),
            (std::vector{1.0, -2.0, std::ldexp(1, -24), 65504.0}));
}

TEST(Formats, HalvesKeepInfinitiesNanAndSignedZero) {
  const auto values = decoded(FormatId::F16, {0x00, 0x7C, 0x00, 0xFC, 0x01, 0x7C, 0x00, 0x80});
  EXPECT_EQ(values[0], HUGE_VAL);
  EXPECT_EQ(values[1], -HUGE_VAL);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_TRUE(values[3] == 0 && std::signbit(values[3]));
}

// 0x3C at the second byte of a half makes it 1.

TEST(Formats, Q4_0HoldsElementsSixteenApartInAByte) {
  const auto values = decoded(FormatId::Q4_0, block(FormatId::Q4_0, {{1, 0x3C}, {2, 0xF0}, {17, 0x19}}));
  EXPECT_EQ(values[0], -8);
  EXPECT_EQ(values[16], 7);
  EXPECT_EQ(values[15], 1);
  EXPECT_EQ(values[31], -7);
}

TEST(Formats, Q5_0TakesItsFifthBitFromAMask) {
  const auto values = decoded(FormatId::Q5_0, block(FormatId::Q5_0, {{1, 0x3C}, {2, 0x01}, {5, 0x80}, {6, 0x05}}));
  EXPECT_EQ(values[0], 5);  // 16 + 5 - 16
  EXPECT_EQ(values[16], -16);
  EXPECT_EQ(values[31], 0);  // bit 31 of the mask
}

TEST(Formats, Q4_KSplitsLateScalesOverTwoBytes) {
  // Group 4's scale is the low four bits of byte 8 with the top two of byte 0; here 3 and 2: 3 + 2 * 16.
  const auto values =
      decoded(FormatId::Q4_K, block(FormatId::Q4_K, {{1, 0x3C}, {4, 0x80}, {12, 0x03}, {16 + 64, 0x01}}));
  EXPECT_EQ(values[128], 35);
  EXPECT_EQ(values[129], 0);
}

TEST(Formats, Q6_KIsCenteredOnThirtyTwo) {
  const auto values = decoded(FormatId::Q6_K, block(FormatId::Q6_K, {{209, 0x3C}, {192, 2}, {0, 0x0F}, {128, 0x03}}));
  EXPECT_EQ(values[0], 2 * (63 - 32));
  EXPECT_EQ(values[1], 2 * -32);
}

TEST(Formats, Mxfp4ReachesBothEndsOfItsExponent) {
  const auto smallest = decoded(FormatId::MXFP4, block(FormatId::MXFP4, {{0, 0}, {1, 0x01}}));
  EXPECT_EQ(smallest[0], std::ldexp(0.5, -127));
  const auto greatest = decoded(FormatId::MXFP4, block(FormatId::MXFP4, {{0, 254}, {1, 0xF0}}));
  EXPECT_EQ(greatest[16], std::ldexp(-6, 127));
}

}  // namespace
}  // namespace lane
