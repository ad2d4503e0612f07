// Chunk attention against plain loops in double: windows, soft caps, sinks, keys unlike values, chunks that fill no
// block; and a row's bits in one chunk and in another.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/device_array.h"
#include "kernels/random_blocks.h"
#include "ops/attention_chunk.cuh"
#include "ops/cache.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

struct Case {
  std::vector<int> positions;  // of each sequence's first row
  int rows = 4, groups = 2, heads_per_group = 2, window = 0;
  float limit = 0;
  bool sinks = false;
};

/// The rows' queries and the caches that they see, random.
template <int Width, int ValueWidth>
class ChunkAttention {
 public:
  explicit ChunkAttention(const Case& c)
      : c_(c),
        heads_(size_t(c.groups * c.heads_per_group)),
        context_(size_t(*std::max_element(c.positions.begin(), c.positions.end()) + c.rows)),
        key_row_(size_t(c.groups) * Width),
        value_row_(size_t(c.groups) * ValueWidth),
        slot_(context_ * (key_row_ + value_row_)) {
    q_ = random_floats(c.positions.size() * size_t(c.rows) * heads_ * Width, 21);
    sinks_ = random_floats(heads_, 22);
    const std::vector<float> x = random_floats(c.positions.size() * slot_, 23);
    state_ = std::vector<uint8_t>(2 * x.size());
    for (size_t i = 0; i < x.size(); i++) F16Cache::store(state_.data(), int(i), &x[i]);
  }

  /// Rows [first, first + rows) of every sequence in one launch: [sequences][rows][heads][ValueWidth]. The slots are in
  /// reverse.
  std::vector<float> run(int first, int rows) const {
    const int sequences = int(c_.positions.size());
    std::vector<int> pos, slots;
    std::vector<float> q;
    for (int s = 0; s < sequences; s++) {
      pos.push_back(c_.positions[size_t(s)] + first), slots.push_back(sequences - 1 - s);
      const auto from = q_.begin() + long((size_t(s) * size_t(c_.rows) + size_t(first)) * heads_ * Width);
      q.insert(q.end(), from, from + long(size_t(rows) * heads_ * Width));
    }
    const DeviceArray<uint8_t> state(state_);
    const DeviceArray<float> queries(q), sinks(sinks_);
    const DeviceArray<int> positions(pos), places(slots);
    const DeviceArray<float> out(size_t(sequences * rows) * heads_ * ValueWidth);
    const int shared_bytes = attention_chunk_shared_bytes(Width, ValueWidth);
    const auto kernel = attention_chunk<Width, ValueWidth>;
    expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    const float* none = nullptr;
    const int blocks = (rows * c_.heads_per_group + kChunkQueries - 1) / kChunkQueries;
    expect_success(launch(nullptr, dim3(unsigned(blocks), unsigned(c_.groups * sequences)), dim3(32 * kChunkWarps),
                          size_t(shared_bytes), kernel, out.data(), queries.data(), state.data(),
                          state.data() + 2 * context_ * key_row_, c_.sinks ? sinks.data() : none, positions.data(),
                          places.data(), int64_t(2 * slot_), rows, c_.groups, c_.heads_per_group, kScale, c_.window,
                          c_.limit));
    return out.values();
  }

  std::vector<double> expected() const {
    std::vector<double> out;
    for (size_t s = 0; s < c_.positions.size(); s++)
      for (size_t r = 0; r < size_t(c_.rows); r++)
        for (size_t h = 0; h < heads_; h++) attend(s, r, h, out);
    return out;
  }
  size_t row_values() const { return heads_ * ValueWidth; }

 private:
  static constexpr float kScale = 0.3f;

  void attend(size_t s, size_t r, size_t h, std::vector<double>& out) const {
    const size_t base = (c_.positions.size() - 1 - s) * slot_, group = h / size_t(c_.heads_per_group);
    const float* q = &q_[((s * size_t(c_.rows) + r) * heads_ + h) * Width];
    const int position = c_.positions[s] + int(r), first = c_.window > 0 ? std::max(0, position + 1 - c_.window) : 0;
    std::vector<double> value(ValueWidth);
    double sum = c_.sinks ? std::exp(double(sinks_[h])) : 0;
    for (int p = first; p <= position; p++) {
      const size_t keys = base + size_t(p) * key_row_ + group * Width;
      const size_t values = base + context_ * key_row_ + size_t(p) * value_row_ + group * ValueWidth;
      double score = 0;
      for (size_t i = 0; i < Width; i++) score += double(q[i]) * F16Cache::load(state_.data(), int(keys + i));
      score *= double(kScale);
      if (c_.limit > 0) score = c_.limit * std::tanh(score / c_.limit);
      const double weight = std::exp(score);
      sum += weight;
      for (size_t i = 0; i < ValueWidth; i++) value[i] += weight * F16Cache::load(state_.data(), int(values + i));
    }
    for (const double v : value) out.push_back(v / sum);
  }

  Case c_;
  size_t heads_, context_, key_row_, value_row_, slot_;  // values
  std::vector<float> q_, sinks_;
  std::vector<uint8_t> state_;
};

template <int Width, int ValueWidth>
void expect_attention(const Case& c) {
  const ChunkAttention<Width, ValueWidth> chunk(c);
  const std::vector<float> got = chunk.run(0, c.rows);
  const std::vector<double> expected = chunk.expected();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], expected[i], 3e-6) << "value " << i;
}

TEST(ChunkAttention, TakesChunksOfAnyLength) {
  for (const int rows : {2, 5, 32}) expect_attention<64, 64>({.positions = {0}, .rows = rows});
  expect_attention<64, 64>({.positions = {61}, .rows = 8, .groups = 1, .heads_per_group = 7});
  expect_attention<64, 64>({.positions = {130}, .rows = 33});
}
TEST(ChunkAttention, TakesSeveralSequences) {
  expect_attention<64, 64>({.positions = {0, 70, 3}, .rows = 4, .groups = 1});
}
TEST(ChunkAttention, KeepsToTheWindow) {
  expect_attention<64, 64>({.positions = {5}, .rows = 16, .groups = 1, .window = 10});
  expect_attention<64, 64>({.positions = {150}, .rows = 40, .groups = 1, .window = 70});
}
TEST(ChunkAttention, CapsScoresAndLetsSinksTakeTheirShare) {
  expect_attention<80, 80>({.positions = {20}, .groups = 1, .heads_per_group = 3, .limit = 0.5f, .sinks = true});
}
TEST(ChunkAttention, TakesKeysUnlikeValues) {
  expect_attention<96, 64>({.positions = {70}, .groups = 1});
  expect_attention<32, 128>({.positions = {3}, .groups = 1});
  expect_attention<128, 128>({.positions = {40}, .groups = 1});
}
TEST(ChunkAttention, KeepsLongQueriesInSharedMemory) {
  expect_attention<256, 256>({.positions = {30}, .rows = 6, .groups = 1});
}

/// With and without a window: no row's bits depend on the rows it comes with.
TEST(ChunkAttention, GivesARowTheSameBitsInAnyChunk) {
  for (const int window : {0, 50}) {
    const Case c{.positions = {100}, .rows = 40, .groups = 1, .window = window};
    const ChunkAttention<64, 64> chunk(c);
    const std::vector<float> whole = chunk.run(0, 40);
    for (const auto& [first, rows] : {std::pair{0, 8}, std::pair{8, 32}, std::pair{39, 1}}) {
      const std::vector<float> part = chunk.run(first, rows);
      EXPECT_EQ(std::memcmp(part.data(), &whole[size_t(first) * chunk.row_values()], part.size() * sizeof(float)), 0)
          << "rows from " << first << ", window " << window;
    }
  }
}

}  // namespace
}  // namespace lane::test
