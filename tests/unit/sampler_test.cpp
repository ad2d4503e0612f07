#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

const std::vector<double> kShares = {0.4, 0.05, 0.3, 0.05, 0.2};

std::vector<float> row() {
  std::vector<float> logits;
  for (double p : kShares) logits.push_back(static_cast<float>(std::log(p)) + 7);
  logits.push_back(100);  // padding beyond the tokens
  return logits;
}

std::map<int32_t, int> count(const SamplerOptions& options, int draws = 10000) {
  std::map<int32_t, int> counts;
  const auto logits = row();
  for (int i = 0; i < draws; ++i) {
    int32_t token = -1;
    EXPECT_TRUE(sample(logits.data(), 5, options, static_cast<uint64_t>(i), &token).ok());
    ++counts[token];
  }
  return counts;
}

/// Pearson's statistic of 10,000 draws against `shares` (0: must not appear).
double chi_square(const std::map<int32_t, int>& counts, const std::vector<double>& shares) {
  double sum = 0;
  for (const auto& [id, n] : counts) EXPECT_TRUE(id >= 0 && id < 5 && shares[static_cast<size_t>(id)] > 0) << id;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double expected = 10000 * shares[i];
    const auto found = counts.find(static_cast<int32_t>(i));
    const double n = found == counts.end() ? 0 : found->second;
    if (expected > 0) sum += (n - expected) * (n - expected) / expected;
  }
  return sum;
}

// The bound that chi-square with four degrees of freedom passes once in ten thousand.
constexpr double kBound = 23.5;

TEST(Sampler, DrawsMatchTheProbabilities) {
  for (uint64_t seed : {0ull, 1ull, 42ull, 0x9E3779B97F4A7C15ull, ~0ull}) {
    EXPECT_LT(chi_square(count({1, 0, 1, 0, seed}), kShares), kBound) << seed;
  }
}

TEST(Sampler, TemperatureSharpens) {
  std::vector<double> shares;
  double sum = 0;
  for (double p : kShares) sum += p * p;
  for (double p : kShares) shares.push_back(p * p / sum);
  EXPECT_LT(chi_square(count({0.5, 0, 1, 0, 3}), shares), kBound);
}

TEST(Sampler, TopKKeepsTheMostLikely) {
  EXPECT_LT(chi_square(count({1, 2, 1, 0, 4}), {0.4 / 0.7, 0, 0.3 / 0.7, 0, 0}), kBound);
  EXPECT_EQ(count({1, 1, 1, 0, 4}, 100), (std::map<int32_t, int>{{0, 100}}));
  // Of equals the lower id.
  EXPECT_LT(chi_square(count({1, 4, 1, 0, 4}), {0.4 / 0.95, 0.05 / 0.95, 0.3 / 0.95, 0, 0.2 / 0.95}), kBound);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  EXPECT_LT(chi_square(count({1, 0, 0.65, 0, 5}), {0.4 / 0.7, 0, 0.3 / 0.7, 0, 0}), kBound);
  EXPECT_LT(chi_square(count({1, 0, 0.75, 0, 5}), {0.4 / 0.9, 0, 0.3 / 0.9, 0, 0.2 / 0.9}), kBound);
  EXPECT_EQ(count({1, 0, 0, 0, 5}, 100), (std::map<int32_t, int>{{0, 100}}));
  // Of what top-k left: 0.4 / 0.7 reaches half.
  EXPECT_EQ(count({1, 2, 0.5, 0, 5}, 100), (std::map<int32_t, int>{{0, 100}}));
}

TEST(Sampler, MinPKeepsThoseLikelyBesideTheFirst) {
  EXPECT_LT(chi_square(count({1, 0, 1, 0.45, 6}), {0.4 / 0.9, 0, 0.3 / 0.9, 0, 0.2 / 0.9}), kBound);
  EXPECT_EQ(count({1, 0, 1, 1, 6}, 100), (std::map<int32_t, int>{{0, 100}}));
}

TEST(Sampler, SameSeedSameTokens) {
  const auto logits = row();
  for (uint64_t draw = 0; draw < 100; ++draw) {
    int32_t a = -1, b = -2;
    sample(logits.data(), 5, {1, 0, 1, 0, 7}, draw, &a);
    sample(logits.data(), 5, {1, 0, 1, 0, 7}, draw, &b);
    EXPECT_EQ(a, b);
  }
  EXPECT_NE(count({1, 0, 1, 0, 7}), count({1, 0, 1, 0, 8}));
}

TEST(Sampler, GreedyTakesTheLowestIdAmongEquals) {
  const float logits[] = {1, 3, 3, 2, 9};
  int32_t token = -1;
  ASSERT_TRUE(sample(logits, 4, {}, 0, &token).ok());
  EXPECT_EQ(token, 1);
}

TEST(Sampler, RefusesWhatIsNoDistribution) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> rows = {{1, nan}, {1, infinity}, {-infinity, -infinity}};
  for (const auto& logits : rows) {
    for (double temperature : {0.0, 1.0}) {
      int32_t token = -1;
      const Status status = sample(logits.data(), 2, {temperature, 0, 1, 0, 0}, 0, &token);
      EXPECT_EQ(status.code, kExitInternal);
    }
  }
  const float masked[] = {-infinity, 2};
  for (uint64_t draw = 0; draw < 100; ++draw) {
    int32_t token = -1;
    ASSERT_TRUE(sample(masked, 2, {1, 0, 1, 0, 0}, draw, &token).ok());
    EXPECT_EQ(token, 1);
  }
}

}  // namespace
}  // namespace lane::test
