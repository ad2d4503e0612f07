#include <algorithm>
#include <cmath>
#include <numbers>

#include "lane/weights.h"

namespace lane {
namespace {

/// The pair whose wave turns `turns` times within the original context (YaRN's correction dimension), as a real number.
double pair_of_turns(double turns, double turned, double original, double base) {
  return turned * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

/// How much of YaRN's interpolation pair `pair` takes: 0 for fast waves, 1 for slow ones, a ramp between.
double interpolation(double pair, const Op& rotation) {
  const double turned = rotation.option(OptionKey::Turned), base = rotation.option(OptionKey::Base);
  const double original = rotation.option(OptionKey::Original);
  const double low = std::floor(pair_of_turns(rotation.option(OptionKey::Fast, 32), turned, original, base));
  const double high = std::ceil(pair_of_turns(rotation.option(OptionKey::Slow, 1), turned, original, base));
  const double first = std::max(low, 0.0), last = std::min(high, turned - 1);
  return std::clamp((pair - first) / std::max(last - first, 0.001), 0.0, 1.0);
}

}  // namespace

std::vector<double> rotary_frequencies(const Op& rotation, const std::vector<double>& factors) {
  const int64_t pairs = rotation.integer(OptionKey::Turned) / 2;
  const double base = rotation.option(OptionKey::Base), yarn = rotation.option(OptionKey::Yarn, 1);
  std::vector<double> frequencies;
  for (int64_t pair = 0; pair < pairs; pair++) {
    double frequency = std::pow(base, -double(pair) / double(pairs));
    if (!factors.empty()) frequency /= factors[size_t(pair)];
    frequency /= rotation.option(OptionKey::Linear, 1);
    if (rotation.has(OptionKey::Yarn)) {
      const double share = interpolation(double(pair), rotation);
      frequency = frequency / yarn * share + frequency * (1 - share);
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace lane
