// Products that make the sum they read, a norm's and what is carried on, against rms_norm and the products of its
// result: the same bits, on the host chip or on a GPU.
#include <gtest/gtest.h>

#include "kernels/repacked_matrix.h"
#include "layout/all.cuh"
#include "ops/norm.cuh"
#include "ops/post_normed_products.cuh"

namespace lane::test {
namespace {

constexpr int kGrid = 5, kSharedLimit = 200 * 1024;
constexpr float kEpsilon = 1e-6f, kPostEpsilon = 1e-5f;

bool same_bits(const DeviceArray<float>& a, const DeviceArray<float>& b) {
  const std::vector<float> left = a.values(), right = b.values();
  return left.size() == right.size() && memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

/// x, the weights of the norm behind it and of the next one, what is carried, and rms_norm's sum of them.
template <int Columns>
struct Sum {
  DeviceArray<float> x{random_floats(Columns, 1)}, post{random_floats(Columns, 2)}, carried{random_floats(Columns, 3)},
      norm{random_floats(Columns, 4)}, expected{size_t(Columns)}, made{size_t(Columns)};
  Sum() {
    const float* none = nullptr;
    run_kernel(rms_norm, dim3(1), kRowNormThreads, 0, expected.data(), x.data(), post.data(), none, carried.data(),
               Columns, Columns, kPostEpsilon);
  }
};

template <class L, int Columns, int Words>
void expect_gated(FormatId id, int rows) {
  SCOPED_TRACE(Columns);
  ASSERT_TRUE(post_norm_fits(Columns, true));
  const Sum<Columns> sum;
  const Matrix<L> gate(id, rows, Columns, 5), up(id, rows, Columns, 6);
  const StreamedMatrix shape{L::kBytes256, rows};
  const StreamedGeometry g = streamed_geometry(Columns, &shape, 1, true, Words, kGrid, kSharedLimit);
  const DeviceArray<float> apart{size_t(rows)}, fused{size_t(rows)};
  run_kernel(streamed_gated_product<L, Columns, Words>, dim3(unsigned(g.grid)), g.threads, g.shared_bytes, apart.data(),
             gate.repacked.data(), up.repacked.data(), sum.expected.data(), sum.norm.data(), kEpsilon, 1, rows,
             g.share[0].rows_per_block, g.share[0].ring);
  run_kernel(post_normed_gated_product<L, Columns, Words>, dim3(unsigned(g.grid)), g.threads, g.shared_bytes,
             fused.data(), sum.made.data(), gate.repacked.data(), up.repacked.data(), sum.x.data(), sum.post.data(),
             sum.carried.data(), kPostEpsilon, sum.norm.data(), kEpsilon, 1, rows, g.share[0].rows_per_block,
             g.share[0].ring);
  EXPECT_TRUE(same_bits(sum.made, sum.expected));
  EXPECT_TRUE(same_bits(fused, apart));
}

TEST(PostNormed, GatesWhatTheLaunchesApartGate) {
  expect_gated<RepackedQ5_0, 640, 2>(FormatId::Q5_0, 33);
  expect_gated<RepackedQ8_0, 1152, 2>(FormatId::Q8_0, 21);  // more than four values a thread of the norm
  expect_gated<RepackedQ4_K, 2560, 2>(FormatId::Q4_K, 17);  // three slices, and warps without one
}

TEST(PostNormed, ComputesThreeMatricesOfTheSum) {
  constexpr int kColumns = 1280;
  const Sum<kColumns> sum;
  const Matrix<RepackedQ4_K> q(FormatId::Q4_K, 40, kColumns, 5), k(FormatId::Q4_K, 9, kColumns, 6);
  const Matrix<RepackedQ6_K> v(FormatId::Q6_K, 8, kColumns, 7);
  const StreamedMatrix shapes[] = {
      {RepackedQ4_K::kBytes256, 40}, {RepackedQ4_K::kBytes256, 9}, {RepackedQ6_K::kBytes256, 8}};
  const StreamedGeometry g = streamed_geometry(kColumns, shapes, 3, false, 2, kGrid, kSharedLimit);
  const auto& s = g.share;
  const DeviceArray<float> apart{size_t(57)}, fused{size_t(57)};
  const float* none = nullptr;
  run_kernel(streamed_products<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, kColumns, 2>, dim3(unsigned(g.grid)),
             g.threads, g.shared_bytes, apart.data(), apart.data() + 40, apart.data() + 49, q.repacked.data(),
             k.repacked.data(), v.repacked.data(), sum.expected.data(), sum.norm.data(), kEpsilon, none, none, none, 40,
             9, 8, s[0].blocks, s[1].blocks, s[2].blocks, s[0].rows_per_block, s[1].rows_per_block, s[2].rows_per_block,
             s[0].ring, s[1].ring, s[2].ring);
  run_kernel(post_normed_products<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, kColumns, 2>, dim3(unsigned(g.grid)),
             g.threads, g.shared_bytes, fused.data(), fused.data() + 40, fused.data() + 49, sum.made.data(),
             q.repacked.data(), k.repacked.data(), v.repacked.data(), sum.x.data(), sum.post.data(), sum.carried.data(),
             kPostEpsilon, sum.norm.data(), kEpsilon, none, none, none, 40, 9, 8, s[0].blocks, s[1].blocks, s[2].blocks,
             s[0].rows_per_block, s[1].rows_per_block, s[2].rows_per_block, s[0].ring, s[1].ring, s[2].ring);
  EXPECT_TRUE(same_bits(sum.made, sum.expected));
  EXPECT_TRUE(same_bits(fused, apart));
}

}  // namespace
}  // namespace lane::test
