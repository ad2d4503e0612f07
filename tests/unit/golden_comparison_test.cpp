// The comparison of a program with a golden case must fail where the program is wrong.
#include "support/golden_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lane::test {
namespace {

constexpr double kTie = 1e-3;

/// Three positions over a vocabulary of four: a prompt of two ids, two greedy ids.
GoldenCase small_case() {
  GoldenCase golden;
  golden.name = "small";
  golden.prompt_ids = {1, 2};
  golden.greedy_ids = {3, 0};
  golden.top8 = {{{0, 2}, {4.0, 1.0}, 0}, {{3, 1}, {2.0, 1.9995}, 0}, {{0, 1}, {5.0, 4.0}, 0}};
  golden.full_logits[0] = {4.0, -1.0, 1.0, 0.0};
  return golden;
}
std::vector<float> right_logits() { return {4, -1, 1, 0, 0, 1.9995f, 0, 2, 5, 4, 0, 0}; }

TEST(GoldenComparison, TakesTheOraclesOwnLogits) {
  const auto found = compare_logits(small_case(), right_logits(), kTie);
  EXPECT_EQ(found.positions, 3);
  EXPECT_EQ(found.agreed, 3);
  EXPECT_LE(found.max_difference, 1e-6);
  EXPECT_LE(found.max_kl, 1e-12);
  EXPECT_TRUE(found.within({}));
}

TEST(GoldenComparison, TakesOthersRowsForTheOracles) {
  std::vector<float> exact = right_logits();
  exact[0] = -3, exact[1] = 7;
  EXPECT_FALSE(compare_logits(small_case(), exact, kTie).within({}));
  const GoldenCase golden = with_oracle(small_case(), exact);
  EXPECT_EQ(golden.top8[0].ids, (std::vector<int>{1, 2, 3, 0}));
  const auto found = compare_logits(golden, exact, kTie);
  EXPECT_TRUE(found.within({}));
  EXPECT_EQ(found.max_kl, 0);
  EXPECT_FALSE(compare_logits(golden, right_logits(), kTie).within({}));
}

TEST(GoldenComparison, SeesALogitOutOfBounds) {
  std::vector<float> listed = right_logits(), full_alone = right_logits();
  listed[9] += 0.002f;
  full_alone[3] += 0.002f;
  for (const auto& logits : {listed, full_alone}) {
    const auto found = compare_logits(small_case(), logits, kTie);
    EXPECT_NEAR(found.max_difference, 0.002, 1e-6);
    EXPECT_FALSE(found.within({.mean_kl = 1}));
    EXPECT_TRUE(found.within({.difference = 0.003, .mean_kl = 1}));
  }
}

TEST(GoldenComparison, SeesAnotherChoice) {
  std::vector<float> logits = right_logits();
  logits[10] = 6;  // an id that the golden does not list
  EXPECT_EQ(compare_logits(small_case(), logits, kTie).agreed, 2);
  logits = right_logits();
  logits[9] = 5.5f;  // one that it lists, far below the highest
  EXPECT_EQ(compare_logits(small_case(), logits, kTie).agreed, 2);
}

TEST(GoldenComparison, TakesEitherOfATie) {
  std::vector<float> logits = right_logits();
  logits[5] = 2.0001f;
  EXPECT_EQ(compare_logits(small_case(), logits, kTie).agreed, 3);
  EXPECT_EQ(compare_logits(small_case(), logits, 1e-4).agreed, 2);
}

TEST(GoldenComparison, MeasuresTheDivergence) {
  std::vector<float> logits = right_logits();
  logits[9] += 0.5f;
  const double p = 1 / (1 + std::exp(-1.0)), q = 1 / (1 + std::exp(-0.5));
  const double kl = p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q));
  const auto found = compare_logits(small_case(), logits, kTie);
  EXPECT_NEAR(found.max_kl, kl, 1e-7);
  EXPECT_NEAR(found.mean_kl, kl / 3, 1e-7);
  EXPECT_FALSE(found.within({.difference = 1}));
}

TEST(GoldenComparison, TakesNoNumberForFarAway) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = right_logits();
    logits[8] = wrong;
    const auto found = compare_logits(small_case(), logits, kTie);
    EXPECT_FALSE(found.within({.difference = 1e30, .mean_kl = 1e30}));
  }
}

TEST(GoldenComparison, RefusesDumpsOfAnotherShape) {
  std::vector<float> logits = right_logits();
  EXPECT_THROW(compare_logits(small_case(), {}, kTie), std::runtime_error);
  logits.pop_back();
  EXPECT_THROW(compare_logits(small_case(), logits, kTie), std::runtime_error);
  EXPECT_THROW(compare_logits(small_case(), std::vector<float>(15), kTie), std::runtime_error);
  GoldenCase without_full = small_case();
  without_full.full_logits.clear();
  EXPECT_THROW(compare_logits(without_full, std::vector<float>(9), kTie), std::runtime_error);
}

std::string answer(const std::string& ids, const std::string& reason = "length") {
  return R"({"prompt_ids": [1, 2], "ids": [)" + ids + R"(], "finish_reason": ")" + reason + "\"}";
}

TEST(GoldenComparison, FollowsAnAnswer) {
  EXPECT_EQ(compare_answer(small_case(), answer("3, 0"), kTie), 2);
  EXPECT_EQ(compare_answer(small_case(), answer("3", "stop"), kTie), 1);
  EXPECT_EQ(compare_answer(small_case(), answer("1, 2"), kTie), 0);  // a tie: another path
}

TEST(GoldenComparison, RefusesAWrongAnswer) {
  EXPECT_THROW(compare_answer(small_case(), answer("3, 1"), kTie), std::runtime_error);
  EXPECT_THROW(compare_answer(small_case(), answer("1, 2"), 1e-4), std::runtime_error);
  EXPECT_THROW(compare_answer(small_case(), answer("3"), kTie), std::runtime_error);
  EXPECT_THROW(compare_answer(small_case(), answer("", "stop"), kTie), std::runtime_error);
  EXPECT_THROW(compare_answer(small_case(), R"({"prompt_ids": [1], "ids": [3, 0]})", kTie), std::runtime_error);
}

}  // namespace
}  // namespace lane::test
