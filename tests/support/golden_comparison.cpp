#include "support/golden_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace lane::test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Rows of one size whose ids and full rows are those of the golden.
size_t vocabulary_of(const GoldenCase& golden, size_t logits) {
  const size_t positions = golden.top8.size();
  if (logits == 0 || logits % positions != 0)
    throw std::runtime_error(fmt::format("{} logits are no {} rows", logits, positions));
  const size_t vocabulary = logits / positions;
  for (const auto& [position, full] : golden.full_logits)
    if (full.size() != vocabulary)
      throw std::runtime_error(fmt::format("rows of {} logits; the vocabulary has {}", vocabulary, full.size()));
  for (const TopLogits& top : golden.top8)
    for (const int id : top.ids)
      if (size_t(id) >= vocabulary)
        throw std::runtime_error(fmt::format("rows of {} logits, which lack id {}", vocabulary, id));
  return vocabulary;
}

double distance(double expected, float found) {
  return std::isfinite(found) ? std::abs(double(found) - expected) : kInfinite;
}

double log_of_sum(const std::vector<double>& logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

double divergence(const TopLogits& top, std::span<const float> row) {
  std::vector<double> found;
  for (const int id : top.ids) found.push_back(row[size_t(id)]);
  const double expected_sum = log_of_sum(top.logits), found_sum = log_of_sum(found);
  double kl = 0;
  for (size_t i = 0; i < found.size(); i++) {
    const double log_p = top.logits[i] - expected_sum, log_q = found[i] - found_sum;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return std::isfinite(kl) ? std::max(kl, 0.0) : kInfinite;
}

/// Whether the oracle's logit of `id` is its highest, or as good as that.
bool is_right(const TopLogits& top, int id, double tie) {
  for (size_t i = 0; i < top.ids.size(); i++)
    if (top.ids[i] == id) return i == 0 || top.logits[0] - top.logits[i] < tie;
  return false;
}

}  // namespace

GoldenComparison compare_logits(const GoldenCase& golden, std::span<const float> logits, double tie) {
  const size_t vocabulary = vocabulary_of(golden, logits.size());
  GoldenComparison result;
  result.positions = int(golden.top8.size());
  for (int position = 0; position < result.positions; position++) {
    const auto row = logits.subspan(size_t(position) * vocabulary, vocabulary);
    const TopLogits& top = golden.top8[size_t(position)];
    for (size_t i = 0; i < top.ids.size(); i++)
      result.max_difference = std::max(result.max_difference, distance(top.logits[i], row[size_t(top.ids[i])]));
    if (const auto full = golden.full_logits.find(position); full != golden.full_logits.end())
      for (size_t id = 0; id < vocabulary; id++)
        result.max_difference = std::max(result.max_difference, distance(full->second[id], row[id]));
    result.agreed += is_right(top, int(std::ranges::max_element(row) - row.begin()), tie);
    const double kl = divergence(top, row);
    result.mean_kl += kl / result.positions;
    result.max_kl = std::max(result.max_kl, kl);
  }
  return result;
}

GoldenCase with_oracle(GoldenCase golden, std::span<const float> logits) {
  golden.full_logits.clear();
  const size_t vocabulary = vocabulary_of(golden, logits.size()), count = std::min<size_t>(16, vocabulary);
  std::vector<int> ids(vocabulary);
  for (size_t position = 0; position < golden.top8.size(); position++) {
    const auto row = logits.subspan(position * vocabulary, vocabulary);
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::partial_sort(ids, ids.begin() + ptrdiff_t(count), [&](int a, int b) {
      return std::pair(-row[size_t(a)], a) < std::pair(-row[size_t(b)], b);
    });
    TopLogits& top = golden.top8[position];
    top = {{ids.begin(), ids.begin() + ptrdiff_t(count)}, {}, 0};
    for (const int id : top.ids) top.logits.push_back(row[size_t(id)]);
  }
  return golden;
}

int compare_answer(const GoldenCase& golden, const std::string& answer, double tie) {
  const auto json = nlohmann::json::parse(answer);
  const auto prompt = json.at("prompt_ids").get<std::vector<int>>(), ids = json.at("ids").get<std::vector<int>>();
  if (prompt != golden.prompt_ids)
    throw std::runtime_error(fmt::format("the prompt's ids are {}", json.at("prompt_ids").dump()));
  for (size_t i = 0; i < golden.greedy_ids.size(); i++) {
    if (i == ids.size() && i > 0 && json.at("finish_reason") == "stop") return int(i);
    if (i == ids.size()) throw std::runtime_error(fmt::format("ends after {} ids", i));
    if (ids[i] == golden.greedy_ids[i]) continue;
    if (is_right(golden.top8[prompt.size() - 1 + i], ids[i], tie)) return int(i);
    throw std::runtime_error(fmt::format("id {} is {}, not {}", i, ids[i], golden.greedy_ids[i]));
  }
  return int(golden.greedy_ids.size());
}

}  // namespace lane::test
