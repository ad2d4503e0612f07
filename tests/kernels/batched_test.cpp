// Products of float weights and several tokens have the bits of the streamed products of each token alone: both
// layouts, slices of all lengths, any number of tokens, any grid.
#include <gtest/gtest.h>

#include "kernels/repacked_matrix.h"
#include "layout/floats.cuh"
#include "ops/batched_product.cuh"
#include "ops/float_vectors.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

constexpr int kSharedLimit = 227 * 1024;
constexpr float kEpsilon = 1e-6f;

/// Tokens' vectors as a product of `Matrices` matrices takes them, and what is added to it; the norm may be left out.
template <class L, int Columns, int Matrices>
struct Inputs {
  Inputs(int rows, int token_count, bool normed)
      : tokens(token_count),
        x(random_floats(size_t(token_count * Columns), 4)),
        norm(random_floats(size_t(Columns), 5)),
        bias(random_floats(size_t(rows), 6)),
        residual(random_floats(size_t(token_count * rows), 7)),
        norm_or_null(normed ? norm.data() : nullptr),
        vectors(float_vectors_bytes(Columns, token_count)) {
    const unsigned blocks = unsigned(tokens + kTokenGroup - 1) / kTokenGroup * kTokenGroup;
    run_kernel(float_vectors<L, Columns, Matrices>, dim3(blocks), 32 * streamed_warps(Columns, Matrices == 2),
               streamed_vector_bytes(kFloatActivations, slices(Columns).full) * slices(Columns).count, vectors.data(),
               x.data(), norm_or_null, kEpsilon, tokens);
  }
  int tokens;
  DeviceArray<float> x, norm, bias, residual;
  const float* norm_or_null;
  DeviceArray<uint8_t> vectors;
};

/// Where the first `expected.size()` results differ: nowhere, -1.
int first_difference(const std::vector<float>& got, const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); i++)
    if (memcmp(&got[i], &expected[i], sizeof(float))) return int(i);
  return -1;
}

template <class L, int Columns>
void expect_streamed_bits(FormatId id, int rows, int tokens, bool normed) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(tokens) + " tokens");
  const Matrix<L> m(id, rows, Columns, 3);
  const Inputs<L, Columns, 1> in(rows, tokens, normed);
  const StreamedMatrix shape{L::kBytes256, rows};
  const StreamedGeometry s = streamed_geometry(Columns, &shape, 1, false, kFloatActivations, 132, kSharedLimit);
  const DeviceArray<float> alone(size_t(tokens * rows));
  run_kernel(streamed_product<L, Columns, kFloatActivations>, dim3(unsigned(s.grid), unsigned(tokens)), s.threads,
             s.shared_bytes, alone.data(), m.repacked.data(), in.x.data(), in.norm_or_null, kEpsilon, in.bias.data(),
             in.residual.data(), rows, s.share[0].rows_per_block, s.share[0].ring);
  for (int multiprocessors : {1, 3}) {
    const BatchedGeometry g =
        batched_geometry(Columns, L::kBytes256, rows, tokens, false, multiprocessors, kSharedLimit);
    const DeviceArray<float> together(size_t(tokens * rows));
    run_kernel(batched_product<L, Columns>, dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads, g.shared_bytes,
               together.data(), m.repacked.data(), in.vectors.data(), in.bias.data(), in.residual.data(), rows, tokens,
               g.ring);
    EXPECT_EQ(first_difference(together.values(), alone.values()), -1) << multiprocessors << " multiprocessors";
  }
}

TEST(BatchedProduct, HasTheBitsOfEachTokenAlone) {
  expect_streamed_bits<RepackedBF16, 256>(FormatId::BF16, 37, 3, true);
  expect_streamed_bits<RepackedBF16, 2048>(FormatId::BF16, 150, 16, true);
  expect_streamed_bits<RepackedF16, 1280>(FormatId::F16, 18, 9, true);
  expect_streamed_bits<RepackedF16, 896>(FormatId::F16, 75, 35, true);
  expect_streamed_bits<RepackedBF16, 128>(FormatId::BF16, 1, 12, true);
  expect_streamed_bits<RepackedF16, 4864>(FormatId::F16, 103, 5, false);
}

template <class L, int Columns>
void expect_streamed_gated_bits(FormatId id, int rows, int tokens, int gelu) {
  SCOPED_TRACE(std::string(format(id).name) + (gelu ? ", GELU" : ", SiLU"));
  const Matrix<L> gate(id, rows, Columns, 3), up(id, rows, Columns, 4);
  const Inputs<L, Columns, 2> in(rows, tokens, true);
  const StreamedMatrix shape{L::kBytes256, rows};
  const StreamedGeometry s = streamed_geometry(Columns, &shape, 1, true, kFloatActivations, 132, kSharedLimit);
  const DeviceArray<float> alone(size_t(tokens * rows)), together(size_t(tokens * rows));
  run_kernel(streamed_gated_product<L, Columns, kFloatActivations>, dim3(unsigned(s.grid), unsigned(tokens)), s.threads,
             s.shared_bytes, alone.data(), gate.repacked.data(), up.repacked.data(), in.x.data(), in.norm_or_null,
             kEpsilon, gelu, rows, s.share[0].rows_per_block, s.share[0].ring);
  const BatchedGeometry g = batched_geometry(Columns, L::kBytes256, rows, tokens, true, 2, kSharedLimit);
  run_kernel(batched_gated_product<L, Columns>, dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads, g.shared_bytes,
             together.data(), gate.repacked.data(), up.repacked.data(), in.vectors.data(), gelu, rows, tokens, g.ring);
  EXPECT_EQ(first_difference(together.values(), alone.values()), -1);
}

TEST(BatchedProduct, GatesWithTheBitsOfEachTokenAlone) {
  expect_streamed_gated_bits<RepackedBF16, 512>(FormatId::BF16, 45, 11, 0);
  expect_streamed_gated_bits<RepackedF16, 2304>(FormatId::F16, 17, 4, 1);
}

TEST(BatchedGeometry, FitsTheChip) {
  for (int columns : {128, 640, 896, 2048, 4096, 4864, 14336, 28672}) {
    for (int rows : {1, 131, 896, 4096, 128256, 262144}) {
      for (int tokens : {2, 8, 16, 17, 512}) {
        const BatchedGeometry g = batched_geometry(columns, 512, rows, tokens, false, 132, kSharedLimit);
        SCOPED_TRACE(std::to_string(columns) + " x " + std::to_string(rows) + ", " + std::to_string(tokens));
        EXPECT_GE(g.grid_y * kTokenGroup, tokens);
        EXPECT_LE(g.grid_x, (rows + kBatchedRows - 1) / kBatchedRows);
        EXPECT_TRUE(has_shared(g, kSharedLimit));
        EXPECT_GE(g.ring, 1);
      }
    }
  }
}

}  // namespace
}  // namespace lane::test
