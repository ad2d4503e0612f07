// Chained products against the launches that they stand for, bit for bit, on the host chip or on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/repacked_matrix.h"
#include "layout/all.cuh"
#include "ops/chained_products.cuh"
#include "ops/post_normed_products.cuh"

namespace lane::test {
namespace {

constexpr int kGrid = 5, kSharedLimit = 200 * 1024;
constexpr float kEpsilon = 1e-6f;

/// y = W x, and where it `adds` + bias + residual, alone; what the second stage reads.
template <class L, int Columns, int Words>
struct First {
  First(FormatId id, int row_count, bool zero, bool adds = true)
      : rows(row_count),
        matrix(id, rows, Columns, 3),
        x(zero ? std::vector<float>(Columns) : random_floats(Columns, 4)),
        bias(zero ? std::vector<float>(size_t(rows)) : random_floats(size_t(rows), 5)),
        residual(zero ? std::vector<float>(size_t(rows)) : random_floats(size_t(rows), 6)),
        norm(random_floats(size_t(rows), 7)),
        y(size_t(rows)) {
    const StreamedMatrix shape{L::kBytes256, rows};
    const StreamedGeometry g = streamed_geometry(Columns, &shape, 1, false, Words, kGrid, kSharedLimit);
    const float* none = nullptr;
    run_kernel(streamed_product<L, Columns, Words>, dim3(unsigned(g.grid)), g.threads, g.shared_bytes, y.data(),
               matrix.repacked.data(), x.data(), none, 0.f, adds ? bias.data() : none, adds ? residual.data() : none,
               rows, g.share[0].rows_per_block, g.share[0].ring);
  }
  int rows;
  Matrix<L> matrix;
  DeviceArray<float> x, bias, residual, norm, y;
};

bool same_bits(const DeviceArray<float>& a, const DeviceArray<float>& b) {
  const std::vector<float> left = a.values(), right = b.values();
  return left.size() == right.size() && memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

/// Launches take turns with two links: each leaves the other's +0, and its own full.
struct Links {
  explicit Links(int columns) : link{DeviceArray<float>(size_t(columns)), DeviceArray<float>(size_t(columns))} {
    for (const DeviceArray<float>& l : link) expect_success(cudaMemset(l.data(), 0, size_t(columns) * sizeof(float)));
  }
  static bool empty(const DeviceArray<float>& l) {
    const std::vector<float> values = l.values();
    return std::all_of(values.begin(), values.end(), [](float v) { return v == 0 && !std::signbit(v); });
  }
  void expect_turn(int turn) const {
    EXPECT_TRUE(empty(link[1 - turn]));
    for (const float v : link[turn].values()) ASSERT_TRUE(v != 0 || std::signbit(v));
  }
  DeviceArray<float> link[2];
};

template <class L, int Columns, int Words, class M, int Hidden, int MWords>
void expect_gated(FormatId first_id, FormatId id, int rows, bool zero = false) {
  SCOPED_TRACE(format(first_id).name);
  const First<L, Columns, Words> first(first_id, Hidden, zero);
  const Matrix<M> gate(id, rows, Hidden, 8), up(id, rows, Hidden, 9);
  const StreamedMatrix y_shape{L::kBytes256, Hidden}, shape{M::kBytes256, rows};
  const StreamedGeometry alone = streamed_geometry(Hidden, &shape, 1, true, MWords, kGrid, kSharedLimit);
  const DeviceArray<float> expected{size_t(rows)}, out{size_t(rows)}, y{size_t(Hidden)};
  run_kernel(streamed_gated_product<M, Hidden, MWords>, dim3(unsigned(alone.grid)), alone.threads, alone.shared_bytes,
             expected.data(), gate.repacked.data(), up.repacked.data(), first.y.data(), first.norm.data(), kEpsilon, 1,
             rows, alone.share[0].rows_per_block, alone.share[0].ring);
  const StreamedGeometry of_y = streamed_geometry(Columns, &y_shape, 1, false, Words, kGrid, kSharedLimit);
  const StreamedShare &y_share = of_y.share[0], &share = alone.share[0];
  const Links links(Hidden);
  for (const int turn : {0, 1, 0}) {
    run_kernel(chained_gated_product<L, Columns, Words, M, Hidden, MWords>, dim3(unsigned(of_y.grid + alone.grid)),
               alone.threads, std::max(of_y.shared_bytes, alone.shared_bytes), out.data(), y.data(),
               links.link[turn].data(), links.link[1 - turn].data(), first.matrix.repacked.data(), first.x.data(),
               first.bias.data(), first.residual.data(), y_share.blocks, y_share.rows_per_block, y_share.ring,
               gate.repacked.data(), up.repacked.data(), first.norm.data(), kEpsilon, 1, rows, share.rows_per_block,
               share.ring);
    EXPECT_TRUE(same_bits(y, first.y));
    EXPECT_TRUE(same_bits(out, expected));
    links.expect_turn(turn);
  }
}

TEST(ChainedProducts, GateWhatTheLaunchesApartGate) {
  expect_gated<RepackedQ4_K, 512, 2, RepackedQ4_K, 256, 2>(FormatId::Q4_K, FormatId::Q4_K, 90);
  expect_gated<RepackedQ6_K, 256, 1, RepackedQ5_0, 128, 1>(FormatId::Q6_K, FormatId::Q5_0, 33);
  expect_gated<RepackedQ8_0, 1152, 2, RepackedBF16, 256, 0>(FormatId::Q8_0, FormatId::BF16, 301);
  expect_gated<RepackedQ4_K, 256, 2, RepackedQ8_0, 128, 2>(FormatId::Q4_K, FormatId::Q8_0, 3);  // idle blocks
}
TEST(ChainedProducts, HandOnZeros) {
  expect_gated<RepackedQ4_K, 512, 2, RepackedQ4_K, 256, 2>(FormatId::Q4_K, FormatId::Q4_K, 90, true);
}

/// The same with a norm between the stages: their sum is made by the second stage's blocks.
template <class L, int Columns, class M, int Hidden, int Words>
void expect_post_normed(FormatId first_id, FormatId id, int rows, bool zero = false) {
  SCOPED_TRACE(Hidden);
  ASSERT_TRUE(post_norm_fits(Hidden, true));
  const float kPostEpsilon = 1e-5f, *none = nullptr;
  const First<L, Columns, Words> first(first_id, Hidden, zero, false);
  const Matrix<M> gate(id, rows, Hidden, 8), up(id, rows, Hidden, 9);
  const DeviceArray<float> post(random_floats(Hidden, 10)), carried(random_floats(Hidden, 11));
  const StreamedMatrix y_shape{L::kBytes256, Hidden}, shape{M::kBytes256, rows};
  const StreamedGeometry of_y = streamed_geometry(Columns, &y_shape, 1, false, Words, kGrid, kSharedLimit),
                         alone = streamed_geometry(Hidden, &shape, 1, true, Words, kGrid, kSharedLimit);
  const StreamedShare &y_share = of_y.share[0], &share = alone.share[0];
  const DeviceArray<float> expected{size_t(rows)}, out{size_t(rows)}, y{size_t(Hidden)}, sum{size_t(Hidden)},
      expected_sum{size_t(Hidden)};
  run_kernel(post_normed_gated_product<M, Hidden, Words>, dim3(unsigned(alone.grid)), alone.threads, alone.shared_bytes,
             expected.data(), expected_sum.data(), gate.repacked.data(), up.repacked.data(), first.y.data(),
             post.data(), carried.data(), kPostEpsilon, first.norm.data(), kEpsilon, 1, rows, share.rows_per_block,
             share.ring);
  const Links links(Hidden);
  for (const int turn : {0, 1, 0}) {
    run_kernel(chained_post_normed_gated_product<L, Columns, Words, M, Hidden, Words>,
               dim3(unsigned(of_y.grid + alone.grid)), alone.threads, std::max(of_y.shared_bytes, alone.shared_bytes),
               out.data(), sum.data(), y.data(), links.link[turn].data(), links.link[1 - turn].data(),
               first.matrix.repacked.data(), first.x.data(), none, y_share.blocks, y_share.rows_per_block, y_share.ring,
               gate.repacked.data(), up.repacked.data(), post.data(), carried.data(), kPostEpsilon, first.norm.data(),
               kEpsilon, 1, rows, share.rows_per_block, share.ring);
    EXPECT_TRUE(same_bits(y, first.y));
    EXPECT_TRUE(same_bits(sum, expected_sum));
    EXPECT_TRUE(same_bits(out, expected));
    links.expect_turn(turn);
  }
}

TEST(ChainedProducts, GateASumOfANormWhatTheLaunchesApartGate) {
  expect_post_normed<RepackedQ4_K, 1024, RepackedQ5_0, 640, 2>(FormatId::Q4_K, FormatId::Q5_0, 90);
  expect_post_normed<RepackedQ8_0, 512, RepackedQ8_0, 1152, 1>(FormatId::Q8_0, FormatId::Q8_0, 21);  // many a thread
  expect_post_normed<RepackedQ4_K, 256, RepackedQ4_K, 2560, 2>(FormatId::Q4_K, FormatId::Q4_K, 17);  // idle warps
  expect_post_normed<RepackedBF16, 256, RepackedBF16, 128, 0>(FormatId::BF16, FormatId::BF16, 3);    // idle blocks
}
TEST(ChainedProducts, HandOnZerosToANorm) {
  expect_post_normed<RepackedQ4_K, 512, RepackedQ4_K, 256, 2>(FormatId::Q4_K, FormatId::Q4_K, 33, true);
}

TEST(ChainedProducts, ComputeThreeMatricesOfWhatTheyMade) {
  constexpr int kHidden = 256, kColumns = 1280;
  const First<RepackedQ6_K, kColumns, 2> first(FormatId::Q6_K, kHidden, false);
  const Matrix<RepackedQ4_K> q(FormatId::Q4_K, 64, kHidden, 3), k(FormatId::Q4_K, 16, kHidden, 4);
  const Matrix<RepackedQ6_K> v(FormatId::Q6_K, 17, kHidden, 5);
  const DeviceArray<float> bias(random_floats(97, 9)), expected{size_t(97)}, out{size_t(97)}, y{size_t(kHidden)};
  const StreamedMatrix y_shape{RepackedQ6_K::kBytes256, kHidden};
  const StreamedMatrix shapes[] = {
      {RepackedQ4_K::kBytes256, 64}, {RepackedQ4_K::kBytes256, 16}, {RepackedQ6_K::kBytes256, 17}};
  const StreamedGeometry alone = streamed_geometry(kHidden, shapes, 3, false, 2, kGrid, kSharedLimit);
  const auto& s = alone.share;
  run_kernel(streamed_products<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, kHidden, 2>, dim3(unsigned(alone.grid)),
             alone.threads, alone.shared_bytes, expected.data(), expected.data() + 64, expected.data() + 80,
             q.repacked.data(), k.repacked.data(), v.repacked.data(), first.y.data(), first.norm.data(), kEpsilon,
             bias.data(), bias.data() + 64, bias.data() + 80, 64, 16, 17, s[0].blocks, s[1].blocks, s[2].blocks,
             s[0].rows_per_block, s[1].rows_per_block, s[2].rows_per_block, s[0].ring, s[1].ring, s[2].ring);
  const StreamedGeometry of_y = streamed_geometry(kColumns, &y_shape, 1, false, 2, kGrid, kSharedLimit);
  const StreamedShare& y_share = of_y.share[0];
  const Links links(kHidden);
  for (const int turn : {0, 1}) {
    run_kernel(chained_products<RepackedQ6_K, kColumns, 2, RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, kHidden, 2>,
               of_y.grid + alone.grid, alone.threads, std::max(of_y.shared_bytes, alone.shared_bytes), out.data(),
               out.data() + 64, out.data() + 80, y.data(), links.link[turn].data(), links.link[1 - turn].data(),
               first.matrix.repacked.data(), first.x.data(), first.bias.data(), first.residual.data(), y_share.blocks,
               y_share.rows_per_block, y_share.ring, q.repacked.data(), k.repacked.data(), v.repacked.data(),
               first.norm.data(), kEpsilon, bias.data(), bias.data() + 64, bias.data() + 80, 64, 16, 17, s[0].blocks,
               s[1].blocks, s[2].blocks, s[0].rows_per_block, s[1].rows_per_block, s[2].rows_per_block, s[0].ring,
               s[1].ring, s[2].ring);
    EXPECT_TRUE(same_bits(y, first.y));
    EXPECT_TRUE(same_bits(out, expected));
    links.expect_turn(turn);
  }
}

}  // namespace
}  // namespace lane::test
