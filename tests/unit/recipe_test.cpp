// The recipes' writer against digests of the files that the goldens were made with.
#include "support/recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "support/golden_case.h"

namespace lane::test {
namespace {

std::map<std::string, std::string> expected_digests() {
  std::map<std::string, std::string> digests;
  std::istringstream lines(read_file(test_path("golden/cases/digests.txt")));
  for (std::string name, value; lines >> name >> value;) digests[name] = value;
  return digests;
}

TEST(Recipe, EveryCaseGivesTheFileItsGoldenWasMadeWith) {
  const auto expected = expected_digests();
  ASSERT_EQ(case_names().size(), expected.size());
  for (const std::string& name : case_names())
    EXPECT_EQ(digest(checkpoint_bytes(load_case(name).recipe)), expected.at(name)) << name;
}

TEST(Recipe, RoundsHalvesToEven) {
  EXPECT_EQ(half_bits(1.0), 0x3C00);
  EXPECT_EQ(half_bits(-2.0), 0xC000);
  EXPECT_EQ(half_bits(1 + std::ldexp(1, -11)), 0x3C00);      // half way: down to the even one
  EXPECT_EQ(half_bits(1 + 3 * std::ldexp(1, -11)), 0x3C02);  // half way: up to the even one
  EXPECT_EQ(half_bits(2 - std::ldexp(1, -12)), 0x4000);      // carries into the exponent
  EXPECT_EQ(half_bits(65519), 0x7BFF);
  EXPECT_EQ(half_bits(65520), 0x7C00);
  EXPECT_EQ(half_bits(std::ldexp(1, -24)), 0x0001);
  EXPECT_EQ(half_bits(std::ldexp(1, -25)), 0x0000);
  EXPECT_EQ(half_bits(std::ldexp(1023.5, -24)), 0x0400);  // past the greatest subnormal: the smallest normal
}

}  // namespace
}  // namespace lane::test
