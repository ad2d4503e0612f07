// Split attention against plain loops in double, on the host chip: one split and many, windows, soft caps, sinks, keys
// unlike values; and a sequence's bits alone and in a batch.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/device_array.h"
#include "kernels/random_blocks.h"
#include "ops/attention_split.cuh"
#include "ops/cache.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

struct Case {
  std::vector<int> positions;  // one a sequence
  int groups = 2, heads_per_group = 4, splits = 4, window = 0;
  float limit = 0;
  bool sinks = false, norm = false, fresh = true;
  int turned = 0, neighbours = 0;
};

/// One launch's arrays, random but for the positions.
template <int Width, int ValueWidth, int Heads>
class Attention {
  using Cache = F16Cache;

 public:
  explicit Attention(const Case& c)
      : c_(c),
        sequences_(c.positions.size()),
        context_(*std::max_element(c.positions.begin(), c.positions.end()) + 1),
        key_bytes_(size_t(c.groups) * Width / Cache::kElements * Cache::kBytes),
        value_bytes_(size_t(c.groups) * ValueWidth / Cache::kElements * Cache::kBytes) {
    stride_ = (size_t(context_) * (key_bytes_ + value_bytes_) + 255) / 256 * 256;
    state_ = std::vector<uint8_t>(stride_ * sequences_);
    fill_state();
    q_ = random_floats(sequences_ * heads() * Width, 11);
    k_ = random_floats(sequences_ * size_t(c.groups) * Width, 12);
    v_ = random_floats(sequences_ * size_t(c.groups) * ValueWidth, 13);
    rotary_ = random_floats(size_t(context_) * size_t(c.turned) + 1, 14);
    norm_ = random_floats(Width, 15);
    sinks_ = random_floats(heads(), 16);
  }

  /// All sequences in one launch, or sequence `only` alone: [heads][ValueWidth] each. The slots are in reverse.
  std::vector<float> run(int only = -1) {
    std::vector<int> pos, slots;
    for (size_t s = 0; s < sequences_; s++) {
      if (only >= 0 && size_t(only) != s) continue;
      pos.push_back(c_.positions[s]), slots.push_back(int(sequences_ - 1 - s));
    }
    const size_t skip = only < 0 ? 0 : size_t(only);
    DeviceArray<uint8_t> state(state_);
    DeviceArray<float> out(pos.size() * heads() * ValueWidth), q(q_), k(k_), v(v_), rotary(rotary_), norm(norm_),
        sinks(sinks_);
    const int parts = c_.groups * c_.heads_per_group / Heads;
    DeviceArray<float> partial(pos.size() * size_t(parts) *
                               size_t(attention_split_partial_floats(c_.splits, Heads, ValueWidth)));
    DeviceArray<int> arrived(std::vector<int>(stride_ / 4 * sequences_)), positions(pos), places(slots);
    uint8_t* values = state.data() + size_t(context_) * key_bytes_;
    const float* none = nullptr;
    const int shared_bytes = attention_split_shared_bytes(Width, ValueWidth, Heads);
    expect_success(cudaFuncSetAttribute(attention_split<Width, ValueWidth, Heads>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    for (int again = 0; again < 2; again++)  // the second launch finds the counters as the first left them
      expect_success(launch(
          nullptr, dim3(unsigned(c_.splits * parts) * unsigned(pos.size()) + 3),
          dim3(32 * attention_split_warps(ValueWidth)), size_t(shared_bytes), attention_split<Width, ValueWidth, Heads>,
          out.data(), state.data(), values, partial.data(), arrived.data(), q.data() + skip * heads() * Width,
          c_.fresh ? k.data() + skip * size_t(c_.groups) * Width : none,
          c_.fresh ? v.data() + skip * size_t(c_.groups) * ValueWidth : none, c_.norm ? norm.data() : none,
          c_.norm ? norm.data() : none, 1e-6f, c_.turned ? rotary.data() : none, c_.turned, c_.neighbours,
          c_.sinks ? sinks.data() : none, positions.data(), places.data(), int64_t(stride_), int(pos.size()), c_.groups,
          c_.heads_per_group, c_.splits, kScale, c_.window, c_.limit));
    const std::vector<float> result = out.values();
    after_ = state.values();
    return result;
  }

  /// The same in double, over the rows that the last run left in the caches.
  std::vector<double> expected() const {
    std::vector<double> out;
    for (size_t s = 0; s < sequences_; s++)
      for (size_t h = 0; h < heads(); h++) attend(s, h, out);
    return out;
  }
  size_t heads() const { return size_t(c_.groups * c_.heads_per_group); }
  /// Values of the token's own row, as the run wrote them, and as they should be before rounding.
  void expect_own_rows(double bound) const {
    for (size_t s = 0; s < sequences_; s++)
      for (int g = 0; g < c_.groups; g++) {
        const auto key = turned(normed(&k_[(s * size_t(c_.groups) + size_t(g)) * Width]), c_.positions[s]);
        for (int i = 0; i < Width; i++)
          EXPECT_NEAR(cached(s, c_.positions[s], false, g * Width + i), key[size_t(i)], bound);
        for (int i = 0; i < ValueWidth; i++)
          EXPECT_NEAR(cached(s, c_.positions[s], true, g * ValueWidth + i),
                      v_[(s * size_t(c_.groups) + size_t(g)) * ValueWidth + size_t(i)], bound);
      }
  }

 private:
  static constexpr float kScale = 0.3f;

  void fill_state() {
    const auto x = random_floats(size_t(c_.groups) * (Width + ValueWidth), 17);
    for (size_t s = 0; s < sequences_; s++)
      for (int p = 0; p < context_; p++) {
        const auto row = random_floats(x.size(), uint32_t(100 + s * 10000) + uint32_t(p));
        uint8_t* keys = &state_[s * stride_ + size_t(p) * key_bytes_];
        uint8_t* values = &state_[s * stride_ + size_t(context_) * key_bytes_ + size_t(p) * value_bytes_];
        for (int i = 0; i < c_.groups * Width; i += Cache::kElements) Cache::store(keys, i, &row[size_t(i)]);
        for (int i = 0; i < c_.groups * ValueWidth; i += Cache::kElements)
          Cache::store(values, i, &row[size_t(c_.groups * Width + i)]);
      }
  }
  double cached(size_t sequence, int p, bool value, int i) const {
    const uint8_t* slot = &after_[(sequences_ - 1 - sequence) * stride_];
    if (value) return Cache::load(slot + size_t(context_) * key_bytes_ + size_t(p) * value_bytes_, i);
    return Cache::load(slot + size_t(p) * key_bytes_, i);
  }
  std::vector<double> normed(const float* x) const {
    std::vector<double> y(x, x + Width);
    if (!c_.norm) return y;
    double squares = 0;
    for (double v : y) squares += v * v;
    for (size_t i = 0; i < y.size(); i++) y[i] *= double(norm_[i]) / std::sqrt(squares / Width + 1e-6);
    return y;
  }
  std::vector<double> turned(const std::vector<double>& x, int position) const {
    std::vector<double> y = x;
    const int half = c_.turned / 2;
    for (int pair = 0; pair < half; pair++) {
      const size_t a = size_t(c_.neighbours ? 2 * pair : pair), b = size_t(c_.neighbours ? 2 * pair + 1 : pair + half);
      const double cosine = rotary_[size_t(position * half + pair) * 2],
                   sine = rotary_[size_t(position * half + pair) * 2 + 1];
      y[a] = x[a] * cosine - x[b] * sine, y[b] = x[b] * cosine + x[a] * sine;
    }
    return y;
  }
  void attend(size_t s, size_t h, std::vector<double>& out) const {
    const int group = int(h) / c_.heads_per_group, position = c_.positions[s];
    const auto q = turned(normed(&q_[(s * heads() + h) * Width]), position);
    const int first = c_.window > 0 ? std::max(0, position + 1 - c_.window) : 0;
    std::vector<double> weight;
    double sum = c_.sinks ? std::exp(double(sinks_[h])) : 0;
    for (int p = first; p <= position; p++) {
      double score = 0;
      for (int i = 0; i < Width; i++) score += q[size_t(i)] * cached(s, p, false, group * Width + i);
      score *= double(kScale);
      if (c_.limit > 0) score = c_.limit * std::tanh(score / c_.limit);
      weight.push_back(std::exp(score)), sum += weight.back();
    }
    for (int e = 0; e < ValueWidth; e++) {
      double value = 0;
      for (int p = first; p <= position; p++)
        value += weight[size_t(p - first)] / sum * cached(s, p, true, group * ValueWidth + e);
      out.push_back(value);
    }
  }

  Case c_;
  size_t sequences_;
  int context_;
  size_t key_bytes_, value_bytes_, stride_ = 0;
  std::vector<uint8_t> state_, after_;
  std::vector<float> q_, k_, v_, rotary_, norm_, sinks_;
};

void expect_close(const std::vector<float>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], expected[i], 3e-6) << "value " << i;
}
template <int Width, int ValueWidth, int Heads>
void expect_attention(const Case& c) {
  Attention<Width, ValueWidth, Heads> a(c);
  const std::vector<float> got = a.run();
  expect_close(got, a.expected());
  if (c.fresh) a.expect_own_rows(2e-3);
  const size_t each = a.heads() * ValueWidth;
  for (size_t s = 0; s < c.positions.size(); s++) {
    const std::vector<float> alone = a.run(int(s));
    EXPECT_EQ(0, memcmp(alone.data(), &got[s * each], 4 * each)) << "sequence " << s;
  }
}

TEST(AttentionSplit, TakesOneSplitOrMany) {
  Case c;
  c.positions = {0, 1, 63, 64, 65, 300};
  c.norm = true, c.turned = 64;
  expect_attention<64, 64, 4>(c);
}
TEST(AttentionSplit, KeepsToTheWindow) {
  Case c;
  c.positions = {4, 9, 10, 200};
  c.window = 10, c.neighbours = 1, c.turned = 32;
  expect_attention<64, 64, 2>(c);
  c.window = 150;
  expect_attention<64, 64, 2>(c);
}
TEST(AttentionSplit, CapsScoresAndLetsSinksTakeTheirShare) {
  Case c;
  c.positions = {3, 140};
  c.limit = 0.5f, c.sinks = true, c.heads_per_group = 3;
  expect_attention<80, 80, 3>(c);
}
TEST(AttentionSplit, TakesKeysUnlikeValues) {
  Case c;
  c.positions = {100};
  expect_attention<96, 64, 4>(c);
  expect_attention<32, 128, 4>(c);
}
TEST(AttentionSplit, SharesLongValuesBetweenWarps) {
  Case c;
  c.positions = {0, 130};
  c.groups = 1, c.turned = 256, c.heads_per_group = 8;
  expect_attention<256, 256, 4>(c);
}
/// Heads that have 8, 16 or 32 lanes, one or two pieces of columns a lane, one or two rounds of heads; rotations of all
/// columns and of some, of halves that end within a lane's four columns.
TEST(AttentionSplit, NormsAndTurnsHeadsOfAnyWidth) {
  for (const int neighbours : {0, 1}) {
    SCOPED_TRACE(neighbours);
    Case c;
    c.positions = {0, 5, 40};
    c.norm = true, c.neighbours = neighbours, c.groups = 1;
    c.turned = 32, c.heads_per_group = 5;
    expect_attention<32, 32, 5>(c);
    c.turned = 28, c.heads_per_group = 7;
    expect_attention<48, 24, 7>(c);
    c.turned = 80, c.heads_per_group = 1;
    expect_attention<80, 40, 1>(c);
    c.turned = 52, c.heads_per_group = 8;
    expect_attention<128, 128, 8>(c);
    c.turned = 256, c.heads_per_group = 4;
    expect_attention<256, 256, 4>(c);
    c.turned = 128;
    expect_attention<256, 256, 4>(c);
  }
}
TEST(AttentionSplit, FindsTheTokensOwnRowInTheCache) {
  Case c;
  c.positions = {0, 17, 90};
  c.fresh = false;
  expect_attention<64, 64, 4>(c);
}

}  // namespace
}  // namespace lane::test
