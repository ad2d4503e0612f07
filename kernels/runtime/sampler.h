// Choosing the next token from a row of logits.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/namespace.h"
#include "runtime/status.h"

namespace LANE_NAMESPACE {

/// Filters apply in this order: the `top_k` most likely tokens; of those the fewest whose probabilities reach `top_p`;
/// of those the ones at least `min_p` times as likely as the first. Probabilities of what is left are then taken at
/// `temperature`.
struct SamplerOptions {
  double temperature = 0;  // 0: the most likely token, the lowest id among equals
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double min_p = 0;
  uint64_t seed = 0;
};

/// A number in [0, 1), a function of its arguments alone: splitmix64's output function over a counter (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014). Draw n is the same whatever was drawn before.
inline double uniform_draw(uint64_t seed, uint64_t draw) {
  const auto mix = [](uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  };
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;
  // The seed is mixed first: seeds a multiple of kGolden apart would otherwise share one sequence.
  return static_cast<double>(mix(mix(seed + kGolden) + (draw + 1) * kGolden) >> 11) * 0x1p-53;
}

namespace sampler_detail {

struct Choice {
  float logit;
  int32_t id;
  // A strict order: equal logits go by id, so that no library's heap decides.
  bool operator<(const Choice& other) const { return logit != other.logit ? logit < other.logit : id > other.id; }
};

/// The highest logit of the row. Refuses what no probability can come from.
inline Status find_best(const float* logits, int32_t tokens, Choice* best) {
  *best = {-std::numeric_limits<float>::infinity(), -1};
  for (int32_t id = 0; id < tokens; ++id) {
    const float logit = logits[id];
    if (!(logit < std::numeric_limits<float>::infinity())) {
      return internal_error("the logit of token " + std::to_string(id) + " is " + std::to_string(logit));
    }
    if (logit > best->logit) *best = {logit, id};
  }
  return best->id >= 0 ? Status{} : internal_error("no token has a finite logit");
}

inline double mass(const std::vector<Choice>& choices, double top) {
  double sum = 0;
  for (const Choice& c : choices) sum += std::exp(c.logit - top);
  return sum;
}

/// The most likely `count` choices whose mass first reaches `share` of `total`, most likely first. At least one.
inline std::vector<Choice> take_best(std::vector<Choice> all, size_t count, double share, double total, double top) {
  std::vector<Choice> kept;
  std::make_heap(all.begin(), all.end());
  double reached = 0;
  while (!all.empty() && kept.size() < count && (kept.empty() || reached < share * total)) {
    std::pop_heap(all.begin(), all.end());
    reached += std::exp(all.back().logit - top);
    kept.push_back(all.back());
    all.pop_back();
  }
  return kept;
}

inline std::vector<Choice> filter(std::vector<Choice> choices, const SamplerOptions& o, double top) {
  constexpr double kNoShare = std::numeric_limits<double>::infinity();
  if (o.top_k > 0 && static_cast<size_t>(o.top_k) < choices.size()) {
    choices = take_best(std::move(choices), static_cast<size_t>(o.top_k), kNoShare, 1, top);
  }
  if (o.top_p < 1) {
    const double total = mass(choices, top);
    const size_t all = choices.size();
    choices = take_best(std::move(choices), all, o.top_p, total, top);
  }
  if (o.min_p > 0) {
    const double least = top + std::log(o.min_p);
    choices.erase(std::remove_if(choices.begin(), choices.end(), [&](const Choice& c) { return c.logit < least; }),
                  choices.end());
  }
  return choices;
}

}  // namespace sampler_detail

/// Chooses among the first `tokens` logits of a row: what a matrix has beyond the vocabulary's tokens is padding and
/// never chosen. `draw` numbers the choice within its sequence. Refuses rows with a logit that is NaN or +∞, and rows
/// without a finite one.
inline Status sample(const float* logits, int32_t tokens, const SamplerOptions& options, uint64_t draw,
                     int32_t* token) {
  using namespace sampler_detail;
  Choice best;
  const Status status = find_best(logits, tokens, &best);
  *token = best.id;
  if (!status.ok() || options.temperature == 0) return status;
  std::vector<Choice> choices(static_cast<size_t>(tokens));
  for (int32_t id = 0; id < tokens; ++id) choices[static_cast<size_t>(id)] = {logits[id], id};
  choices = filter(std::move(choices), options, best.logit);
  std::vector<double> cumulative;
  double sum = 0;
  for (const Choice& c : choices) cumulative.push_back(sum += std::exp((c.logit - best.logit) / options.temperature));
  const double point = uniform_draw(options.seed, draw) * sum;
  const size_t chosen =
      static_cast<size_t>(std::upper_bound(cumulative.begin(), cumulative.end(), point) - cumulative.begin());
  *token = choices[std::min(chosen, choices.size() - 1)].id;
  return {};
}

}  // namespace LANE_NAMESPACE
