// Routing: which experts, how much of each, and the sum of what they give.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "frame.h"

namespace lane::reference {
namespace {

// Below this a sum of shares is taken as this much: half precision's smallest normal number, as the field does.
constexpr double kLeastShareSum = 0.00006103515625;

enum By { kSoftmax = 0, kSigmoid = 1, kSoftmaxOfChosen = 2 };

std::vector<double> softmax(const std::vector<double>& scores) {
  const double greatest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> shares;
  for (double s : scores) shares.push_back(std::exp(s - greatest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& s : shares) s /= sum;
  return shares;
}

/// What experts are chosen by; `by` 2: the scores themselves, which rank as softmax over the chosen does.
std::vector<double> probabilities(int64_t by, std::vector<double> scores) {
  if (by == kSoftmax) return softmax(scores);
  if (by == kSigmoid)
    for (double& s : scores) s = 1 / (1 + std::exp(-s));
  return scores;
}

/// Indices of `scores`, greatest first, the lower index first among equals.
std::vector<int32_t> ranked(const std::vector<double>& scores) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return scores[size_t(a)] > scores[size_t(b)]; });
  return order;
}

/// A group counts as much as its two best experts together; those outside the `kept` best groups are never chosen.
void keep_groups(std::vector<double>& scores, size_t groups, size_t kept) {
  const size_t size = scores.size() / groups;
  std::vector<double> of_group;
  for (size_t g = 0; g < groups; ++g) {
    std::vector<double> members(scores.begin() + int64_t(g * size), scores.begin() + int64_t((g + 1) * size));
    std::sort(members.rbegin(), members.rend());
    of_group.push_back(members[0] + (size > 1 ? members[1] : 0));
  }
  const std::vector<int32_t> order = ranked(of_group);
  for (size_t i = kept; i < groups; ++i)
    std::fill_n(scores.begin() + int64_t(size_t(order[i]) * size), size, -std::numeric_limits<double>::infinity());
}

}  // namespace

template <class T>
void run_top_choice(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0);
  const Rows<int32_t> chosen = f.ids_out(op);
  for (int64_t r = 0; r < x.count; ++r) {
    std::vector<double> scores = probabilities(op.integer(OptionKey::By, kSoftmaxOfChosen), {x[r], x[r] + x.stride});
    if (f.given(op, 1))
      for (size_t e = 0; e < scores.size(); ++e) scores[e] += f.in(op, 1).data[e];
    if (op.has(OptionKey::Groups))
      keep_groups(scores, size_t(op.integer(OptionKey::Groups)), size_t(op.integer(OptionKey::Kept)));
    const std::vector<int32_t> order = ranked(scores);
    std::copy_n(order.begin(), chosen.stride, chosen[r]);
  }
}

namespace {

/// Shares of the chosen experts, before any normalisation.
std::vector<double> shares_of(int64_t by, const std::vector<double>& scores, const int32_t* chosen, int64_t count) {
  const std::vector<double> all = probabilities(by, scores);
  std::vector<double> shares;
  for (int64_t j = 0; j < count; ++j) shares.push_back(all[size_t(chosen[j])]);
  return by == kSoftmaxOfChosen ? softmax(shares) : shares;
}

}  // namespace

template <class T>
void run_chosen_share(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0);
  const Rows<const int32_t> chosen = f.ids(op, 1);
  const Rows<T> y = f.out(op);
  for (int64_t r = 0; r < x.count; ++r) {
    const std::vector<double> shares =
        shares_of(op.integer(OptionKey::By), std::vector<double>(x[r], x[r] + x.stride), chosen[r], chosen.stride);
    double scale = op.option(OptionKey::Factor);
    if (op.integer(OptionKey::Normalised) == 1)
      scale /= std::max(std::accumulate(shares.begin(), shares.end(), 0.0), kLeastShareSum);
    for (int64_t j = 0; j < chosen.stride; ++j) y[r][j] = T(scale * shares[size_t(j)]);
  }
}

template <class T>
void run_expert_bias(Frame<T>& f, const Op& op) {
  const Rows<const T> bias = f.in(op, 0), x = f.in(op, 1);
  const Rows<const int32_t> chosen = f.ids(op, 2);
  const Rows<T> y = f.out(op);
  for (int64_t r = 0; r < y.count; ++r)
    for (int64_t c = 0; c < y.stride; ++c) y[r][c] = x[r][c] + bias[chosen[r][c / bias.stride]][c % bias.stride];
}

template <class T>
void run_expert_sum(Frame<T>& f, const Op& op) {
  const Rows<const T> d = f.in(op, 0), share = f.in(op, 1);
  const Rows<T> y = f.out(op);
  for (int64_t r = 0; r < y.count; ++r) {
    for (int64_t c = 0; c < y.stride; ++c) {
      y[r][c] = 0;
      for (int64_t j = 0; j < share.stride; ++j) y[r][c] += share[r][j] * d[r][j * y.stride + c];
    }
  }
}

LANE_RUN_FOR_BOTH(run_top_choice)
LANE_RUN_FOR_BOTH(run_chosen_share)
LANE_RUN_FOR_BOTH(run_expert_bias)
LANE_RUN_FOR_BOTH(run_expert_sum)

}  // namespace lane::reference
