#include "noise/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "support/recipe.h"

namespace lane::noise {
namespace {

constexpr Mix kMixes[] = {
    {"q4_k_m", FormatId::Q4_K, FormatId::Q6_K, FormatId::Q5_0, FormatId::Q8_0},
    {"q8_0", FormatId::Q8_0, FormatId::Q8_0, FormatId::Q8_0, FormatId::Q8_0},
    {"bf16", FormatId::BF16, FormatId::BF16, FormatId::BF16, FormatId::BF16},
};

/// A half of a block, and its size where the block's other bytes are even noise and its weights shall spread by
/// kSpread.
struct HalfScale {
  size_t offset;
  double magnitude;
};
struct BlockScales {
  FormatId format;
  std::vector<HalfScale> halves;
};

constexpr double kSpread = 0.02;  // standard deviation of a weight, as trained models have it

// Deviations of what the halves multiply: Q4_K 6-bit scale times nibble, less 7.5 times 6-bit minimum, 255; Q5_0 5
// bits, 9.2; Q6_K signed byte times 6 bits, 1369; Q8_0 a signed byte, 74.
const BlockScales kBlockScales[] = {
    {FormatId::Q4_K, {{0, kSpread / 255}, {2, 7.5 * kSpread / 255}}},
    {FormatId::Q5_0, {{0, kSpread / 9.2}}},
    {FormatId::Q6_K, {{208, kSpread / 1369}}},
    {FormatId::Q8_0, {{0, kSpread / 74}}},
};

/// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  /// In [-1, 1).
  double real() { return double(int64_t((*this)()) >> 11) * 0x1p-52; }

 private:
  uint64_t state_;
};

double value(Role role, Random& random) {
  switch (role) {
    case Role::Gain:
      return 1 + random.real() / 4;
    case Role::Bias:
      return random.real() / 8;
    case Role::Divisors:
      return 4.5 + 3.5 * random.real();
    default:
      return kSpread * std::sqrt(3.0) * random.real();
  }
}

std::string floats(const Format& format, Role role, size_t count, Random& random) {
  std::string page;
  for (size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(float(value(role, random)));
    // The upper half of a float32 is a bfloat16, cut rather than rounded: noise all the same.
    const char bytes[4] = {char(bits), char(bits >> 8), char(bits >> 16), char(bits >> 24)};
    page.append(bytes + 4 - format.block_bytes, size_t(format.block_bytes));
  }
  return page;
}

std::string blocks(const Format& format, const BlockScales& scales, size_t count, Random& random) {
  const size_t bytes = size_t(format.block_bytes);
  std::string page((count * bytes + 7) / 8 * 8, '\0');
  for (size_t at = 0; at < page.size(); at += 8) {
    const uint64_t noise = random();
    std::memcpy(&page[at], &noise, 8);
  }
  page.resize(count * bytes);
  for (size_t k = 0; k < count; ++k) {
    const double factor = 1 + random.real() / 2;
    for (const HalfScale& half : scales.halves) {
      const uint16_t bits = test::half_bits(half.magnitude * factor);
      std::memcpy(&page[k * bytes + half.offset], &bits, sizeof bits);
    }
  }
  return page;
}

/// The layers whose FineMatrix a mix stores finer: the first and last eighth, and every third between.
bool takes_more_bits(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

}  // namespace

const Mix* find_mix(std::string_view name) {
  const Mix* found = std::ranges::find(kMixes, name, &Mix::name);
  return found == std::end(kMixes) ? nullptr : found;
}

std::string mix_names() {
  std::string names;
  for (const Mix& mix : kMixes) names += (names.empty() ? "" : ", ") + std::string(mix.name);
  return names;
}

const Format& format_of(const Mix& mix, const Shape& shape, const TensorRow& tensor, int64_t layer) {
  if (tensor.role < Role::Matrix) return format(FormatId::F32);
  const bool fine =
      tensor.role == Role::Output || (tensor.role == Role::FineMatrix && takes_more_bits(layer, shape.layers));
  const Format& wanted = format(fine ? mix.fine : mix.usual);
  if (shape.extent(tensor.columns) % wanted.block_elements == 0) return wanted;
  return format(fine ? mix.fine_otherwise : mix.usual_otherwise);
}

std::string noise_page(const Format& format, Role role, uint64_t seed) {
  constexpr size_t kPageBytes = 8 << 20;
  Random random(seed ^ uint64_t(format.id) << 32 ^ uint64_t(role));
  // An odd count: rows of an even number of blocks meet the page at ever other offsets.
  const size_t count = kPageBytes / size_t(format.block_bytes) | 1;
  if (format.block_elements == 1) return floats(format, role, count, random);
  for (const BlockScales& scales : kBlockScales) {
    if (int32_t(scales.format) == format.id) return blocks(format, scales, count, random);
  }
  throw std::logic_error("no noise for " + std::string(format.name));
}

}  // namespace lane::noise
