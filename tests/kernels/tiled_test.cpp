// Products of several tokens have the bits of the streamed products of each token alone, on the host chip: every
// quantized layout, slices of all lengths, any number of tokens, any grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>

#include "kernels/repacked_layouts.h"
#include "kernels/repacked_matrix.h"
#include "lane/weights.h"
#include "ops/quantize_vectors.cuh"
#include "ops/tiled_product.cuh"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

constexpr int kSharedLimit = 96 * 1024;
constexpr float kEpsilon = 1e-6f;

/// Tokens' vectors and what is added to a product; the norm may be left out.
struct Inputs {
  Inputs(int columns, int rows, int token_count, bool normed)
      : tokens(token_count),
        x(random_floats(size_t(token_count * columns), 4)),
        norm(random_floats(size_t(columns), 5)),
        bias(random_floats(size_t(rows), 6)),
        residual(random_floats(size_t(token_count * rows), 7)),
        norm_or_null(normed ? norm.data() : nullptr) {}
  int tokens;
  DeviceArray<float> x, norm, bias, residual;
  const float* norm_or_null;
};

/// The inputs' vectors for a product of `Matrices` matrices.
template <class L, int Columns, int Words, int Matrices>
struct Quantized {
  explicit Quantized(const Inputs& in) : vectors(quantized_vectors_bytes(Columns, Words, in.tokens)) {
    const unsigned blocks = unsigned(in.tokens + kTokenGroup - 1) / kTokenGroup * kTokenGroup;
    const int parts = in.norm_or_null ? 1 : quantize_parts(Columns, in.tokens, 100);
    run_kernel(quantize_vectors<L, Columns, Words, Matrices>, dim3(blocks, unsigned(parts)),
               32 * streamed_warps(Columns, Matrices == 2),
               streamed_vector_bytes(Words, slices(Columns).full) * slices(Columns).count, vectors.data(), in.x.data(),
               in.norm_or_null, kEpsilon, in.tokens);
  }
  DeviceArray<uint8_t> vectors;
};

/// The kernel for the geometry's tokens and tiles.
template <class L, int Columns, int Words>
auto tiled_kernel(const TiledGeometry& g) {
  if (g.tokens == 32) return tiled_product<L, Columns, Words, 32, 2>;
  if (g.tiles == 1)
    return g.tokens == 16 ? tiled_product<L, Columns, Words, 16, 1> : tiled_product<L, Columns, Words, 8, 1>;
  return g.tokens == 16 ? tiled_product<L, Columns, Words, 16, 2> : tiled_product<L, Columns, Words, 8, 2>;
}
template <class L, int Columns, int Words>
auto tiled_gated_kernel(const TiledGeometry& g) {
  return g.tokens == 32   ? tiled_gated_product<L, Columns, Words, 32, 2>
         : g.tokens == 16 ? tiled_gated_product<L, Columns, Words, 16, 2>
                          : tiled_gated_product<L, Columns, Words, 8, 2>;
}

/// A tiled product's results in the geometry's grid. Launched twice: it leaves the counters as it found them.
template <class L, int Columns, int Words>
std::vector<float> tiled_results(const TiledGeometry& g, const Matrix<L>& m, const Inputs& in, int rows) {
  const Quantized<L, Columns, Words, 1> x(in);
  const DeviceArray<float> out(size_t(in.tokens * rows)), partial(std::max<size_t>(g.partial_floats, 1));
  auto* counters = reinterpret_cast<int*>(x.vectors.data() + tiled_counters_offset(Columns, Words, in.tokens));
  for (int i = 0; i < 2; i++)
    run_kernel(tiled_kernel<L, Columns, Words>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y), unsigned(g.grid_z)),
               g.threads, g.shared_bytes, out.data(), m.repacked.data(), x.vectors.data(), in.bias.data(),
               in.residual.data(), rows, in.tokens, g.ring, partial.data(), counters);
  return out.values();
}

/// Where the first `expected.size()` results differ: nowhere, -1.
int first_difference(const std::vector<float>& got, const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); i++)
    if (memcmp(&got[i], &expected[i], sizeof(float))) return int(i);
  return -1;
}

/// Of each token alone.
template <class L, int Columns, int Words>
std::vector<float> streamed_results(const Matrix<L>& m, const Inputs& in, int rows, bool with_residual = true) {
  const StreamedMatrix shape{L::kBytes256, rows};
  const StreamedGeometry s = streamed_geometry(Columns, &shape, 1, false, Words, 3, kSharedLimit);
  const DeviceArray<float> out(size_t(in.tokens * rows));
  const float* no_residual = nullptr;
  run_kernel(streamed_product<L, Columns, Words>, dim3(unsigned(s.grid), unsigned(in.tokens)), s.threads,
             s.shared_bytes, out.data(), m.repacked.data(), in.x.data(), in.norm_or_null, kEpsilon, in.bias.data(),
             with_residual ? in.residual.data() : no_residual, rows, s.share[0].rows_per_block, s.share[0].ring);
  return out.values();
}

template <class L, int Columns, int Words>
void expect_streamed_bits(FormatId id, int rows, int tokens, bool normed) {
  SCOPED_TRACE(std::string(format(id).name) + ", " + std::to_string(tokens) + " tokens");
  const Matrix<L> m(id, rows, Columns, 3);
  const Inputs in(Columns, rows, tokens, normed);
  const std::vector<float> alone = streamed_results<L, Columns, Words>(m, in, rows);
  for (int multiprocessors : {1, 3}) {
    const TiledGeometry g =
        tiled_geometry(Columns, kTiledFormat<L>, rows, tokens, false, multiprocessors, kSharedLimit);
    EXPECT_EQ(first_difference(tiled_results<L, Columns, Words>(g, m, in, rows), alone), -1)
        << multiprocessors << " multiprocessors";
  }
}

/// In every share of rows and slices that there is.
template <class L, int Columns>
void expect_streamed_bits_of_shares(FormatId id, int rows, int tokens) {
  const Matrix<L> m(id, rows, Columns, 3);
  const Inputs in(Columns, rows, tokens, false);
  const std::vector<float> alone = streamed_results<L, Columns, 2>(m, in, rows);
  const auto problem =
      tiled_detail::problem(tokens <= 8 ? 8 : 16, Columns, kTiledFormat<L>, rows, tokens, false, 2, 227 * 1024);
  for (int tiles : {1, 2}) {
    for (int splits = 1; splits <= slices(Columns).count; splits++) {
      const TiledGeometry g = tiled_detail::geometry(problem, problem.share(tiles, splits), 2);
      EXPECT_EQ(g.grid_z, splits);
      EXPECT_EQ(first_difference(tiled_results<L, Columns, 2>(g, m, in, rows), alone), -1)
          << tiles << " tiles, " << splits << " splits";
    }
  }
}
TEST(TiledProduct, HasThemWhereBlocksShareRows) {
  expect_streamed_bits_of_shares<RepackedQ4_K, 4352>(FormatId::Q4_K, 37, 16);  // five slices, the last one shorter
  expect_streamed_bits_of_shares<RepackedQ6_K, 2048>(FormatId::Q6_K, 70, 5);
}

/// Of three matrices in one launch, those of each alone, whichever of their layouts are the same. Blocks share rows or
/// not.
template <class L0, class L1, class L2, int Columns>
void expect_bits_together(const std::array<FormatId, 3>& ids, int tokens, int multiprocessors) {
  constexpr int kRows[] = {75, 20, 37};
  const Matrix<L0> first(ids[0], kRows[0], Columns, 3);
  const Matrix<L1> second(ids[1], kRows[1], Columns, 4);
  const Matrix<L2> last(ids[2], kRows[2], Columns, 5);
  const Inputs in(Columns, kRows[0], tokens, true);
  const Quantized<L0, Columns, 2, 1> x0(in);
  const Quantized<L1, Columns, 2, 1> x1(in);
  const Quantized<L2, Columns, 2, 1> x2(in);
  const TiledMatrix matrices[] = {
      {kTiledFormat<L0>, kRows[0]}, {kTiledFormat<L1>, kRows[1]}, {kTiledFormat<L2>, kRows[2]}};
  const TiledProductsGeometry g = tiled_products_geometry(matrices, 3, Columns, tokens, multiprocessors, 227 * 1024);
  EXPECT_EQ(g.grid_z > 1, multiprocessors > 100);
  std::deque<DeviceArray<float>> out, partial;
  for (int i = 0; i < 3; i++)
    out.emplace_back(size_t(tokens * kRows[i])), partial.emplace_back(std::max<size_t>(g.partial_floats[i], 1));
  auto* counters = reinterpret_cast<int*>(x0.vectors.data() + tiled_counters_offset(Columns, 2, tokens));
  const auto kernel =
      g.tokens == 8
          ? (g.tiles == 1 ? tiled_products<L0, L1, L2, Columns, 2, 8, 1> : tiled_products<L0, L1, L2, Columns, 2, 8, 2>)
          : (g.tiles == 1 ? tiled_products<L0, L1, L2, Columns, 2, 16, 1>
                          : tiled_products<L0, L1, L2, Columns, 2, 16, 2>);
  const float* bias = in.bias.data();
  for (int again = 0; again < 2; again++)
    run_kernel(kernel, dim3(unsigned(g.grid_x), unsigned(g.grid_y), unsigned(g.grid_z)), g.threads, g.shared_bytes,
               out[0].data(), out[1].data(), out[2].data(), first.repacked.data(), second.repacked.data(),
               last.repacked.data(), x0.vectors.data(), x1.vectors.data(), x2.vectors.data(), bias, bias, bias,
               kRows[0], kRows[1], kRows[2], g.blocks[0], g.blocks[1], g.blocks[2], g.ring[0], g.ring[1], g.ring[2],
               tokens, partial[0].data(), partial[1].data(), partial[2].data(), counters);
  const auto expect = [&]<class M>(int i, const Matrix<M>& m) {
    EXPECT_EQ(first_difference(out[size_t(i)].values(), streamed_results<M, Columns, 2>(m, in, kRows[i], false)), -1)
        << "matrix " << i << ", " << tokens << " tokens, " << multiprocessors << " multiprocessors";
  };
  expect(0, first), expect(1, second), expect(2, last);
}
TEST(TiledProducts, HaveTheBitsOfEachAlone) {
  using F = FormatId;
  expect_bits_together<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, 2304>({F::Q4_K, F::Q4_K, F::Q6_K}, 13, 132);
  expect_bits_together<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, 2304>({F::Q4_K, F::Q4_K, F::Q6_K}, 5, 2);
  expect_bits_together<RepackedQ5_0, RepackedQ5_0, RepackedQ8_0, 896>({F::Q5_0, F::Q5_0, F::Q8_0}, 16, 2);
  expect_bits_together<RepackedQ4_K, RepackedQ4_K, RepackedQ4_K, 512>({F::Q4_K, F::Q4_K, F::Q4_K}, 5, 2);
  expect_bits_together<RepackedQ4_K, RepackedQ6_K, RepackedQ4_K, 512>({F::Q4_K, F::Q6_K, F::Q4_K}, 5, 2);
  expect_bits_together<RepackedQ4_K, RepackedQ6_K, RepackedQ6_K, 512>({F::Q4_K, F::Q6_K, F::Q6_K}, 5, 2);
  expect_bits_together<RepackedQ4_K, RepackedQ6_K, RepackedQ8_0, 512>({F::Q4_K, F::Q6_K, F::Q8_0}, 5, 2);
}

TEST(TiledProduct, HasTheBitsOfEachTokenAlone) {
  expect_streamed_bits<RepackedQ4_K, 256, 2>(FormatId::Q4_K, 37, 3, true);
  expect_streamed_bits<RepackedQ4_K, 2048, 1>(FormatId::Q4_K, 21, 16, true);
  expect_streamed_bits<RepackedQ6_K, 1280, 2>(FormatId::Q6_K, 18, 9, true);
  expect_streamed_bits<RepackedQ5_0, 896, 2>(FormatId::Q5_0, 75, 35, true);
  expect_streamed_bits<RepackedQ8_0, 128, 2>(FormatId::Q8_0, 150, 12, true);
  expect_streamed_bits<RepackedQ8_0, 4864, 2>(FormatId::Q8_0, 16, 5, false);
}

template <class L, int Columns, int Words>
void expect_streamed_gated_bits(FormatId id, int rows, int tokens, int gelu) {
  SCOPED_TRACE(std::string(format(id).name) + (gelu ? ", GELU" : ", SiLU"));
  const Matrix<L> gate(id, rows, Columns, 3), up(id, rows, Columns, 4);
  const Inputs in(Columns, rows, tokens, true);
  const StreamedMatrix shape{L::kBytes256, rows};
  const StreamedGeometry s = streamed_geometry(Columns, &shape, 1, true, Words, 3, kSharedLimit);
  const DeviceArray<float> alone(size_t(tokens * rows)), together(size_t(tokens * rows));
  run_kernel(streamed_gated_product<L, Columns, Words>, dim3(unsigned(s.grid), unsigned(tokens)), s.threads,
             s.shared_bytes, alone.data(), gate.repacked.data(), up.repacked.data(), in.x.data(), in.norm_or_null,
             kEpsilon, gelu, rows, s.share[0].rows_per_block, s.share[0].ring);
  const Quantized<L, Columns, Words, 2> x(in);
  const TiledGeometry g = tiled_geometry(Columns, kTiledFormat<L>, rows, tokens, true, 2, kSharedLimit);
  run_kernel(tiled_gated_kernel<L, Columns, Words>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y)), g.threads,
             g.shared_bytes, together.data(), gate.repacked.data(), up.repacked.data(), x.vectors.data(), gelu, rows,
             tokens, g.ring);
  EXPECT_EQ(first_difference(together.values(), alone.values()), -1);
}

TEST(TiledProduct, GatesWithTheBitsOfEachTokenAlone) {
  expect_streamed_gated_bits<RepackedQ4_K, 512, 2>(FormatId::Q4_K, 45, 11, 0);
  expect_streamed_gated_bits<RepackedQ8_0, 2304, 2>(FormatId::Q8_0, 17, 4, 1);
}

/// 99 KiB a block, as graphics cards have: fewer tokens a block, or a ring of one slot.
TEST(TiledProduct, HasThemWhereSharedMemoryIsShort) {
  constexpr int kShort = 99 * 1024, kColumns = 2048, kRows = 20, kTokensTried = 37;
  const Matrix<RepackedQ6_K> gate(FormatId::Q6_K, kRows, kColumns, 3), up(FormatId::Q6_K, kRows, kColumns, 4);
  const Inputs in(kColumns, kRows, kTokensTried, true);
  const Quantized<RepackedQ6_K, kColumns, 2, 2> x(in);
  std::vector<std::vector<float>> results;
  for (const int limit : {227 * 1024, kShort}) {
    const TiledGeometry g = tiled_geometry(kColumns, kTiledFormat<RepackedQ6_K>, kRows, kTokensTried, true, 2, limit);
    EXPECT_EQ(g.tokens, limit == kShort ? 8 : 32);
    EXPECT_EQ(g.ring == 1, limit == kShort);
    const DeviceArray<float> out(size_t(kTokensTried * kRows));
    run_kernel(tiled_gated_kernel<RepackedQ6_K, kColumns, 2>(g), dim3(unsigned(g.grid_x), unsigned(g.grid_y)),
               g.threads, g.shared_bytes, out.data(), gate.repacked.data(), up.repacked.data(), x.vectors.data(), 0,
               kRows, kTokensTried, g.ring);
    results.push_back(out.values());
  }
  EXPECT_EQ(first_difference(results[1], results[0]), -1);
}

/// The planner knows of a layout what its kernels do.
TEST(TiledFormat, IsWhatTheTableSays) {
  for_each_repacked_layout([]<class L, int Words>(const char* name) {
    const RepackedFormat* row = find_repacked(*find_format(name));
    ASSERT_NE(row, nullptr) << name;
    EXPECT_EQ(row->bytes_256, L::kBytes256) << name;
    if constexpr (Words == 2) {
      EXPECT_EQ(row->word_shares, L::kWordShares) << name;
    }
  });
}

TEST(TiledGeometry, FitsASmallMultiprocessorInEveryFormat) {
  constexpr int kLimit = 99 * 1024;
  constexpr TiledFormat kFormats[] = {kTiledFormat<RepackedQ3_K>, kTiledFormat<RepackedQ4_K>,
                                      kTiledFormat<RepackedQ5_K>, kTiledFormat<RepackedQ6_K>,
                                      kTiledFormat<RepackedQ8_0>};
  for (const TiledFormat& format : kFormats)
    for (int columns : {896, 2048, 4864, 14336})
      for (int tokens : {2, 16, 64, 512})
        for (bool gated : {false, true})
          EXPECT_TRUE(has_shared(tiled_geometry(columns, format, 4096, tokens, gated, 48, kLimit), kLimit))
              << format.bytes_256 << ", " << columns << ", " << tokens << (gated ? ", gated" : "");
}

TEST(TiledGeometry, SharesRowsWhereTheyAreFew) {
  constexpr int kLimit = 227 * 1024;
  EXPECT_EQ(tiled_geometry(4096, {144, true}, 1024, 16, false, 132, kLimit).grid_z, 4);
  EXPECT_EQ(tiled_geometry(4096, {210, false}, 128256, 16, false, 132, kLimit).grid_z, 1);
  EXPECT_EQ(tiled_geometry(4096, {144, true}, 14336, 16, true, 132, kLimit).grid_z, 1);  // gated
  EXPECT_EQ(tiled_geometry(4096, {144, true}, 1024, 64, false, 132, kLimit).grid_z, 1);  // many tokens
}

TEST(TiledGeometry, TakesEveryRowOnceAndFitsTheChip) {
  constexpr int kLimit = 227 * 1024;
  for (int columns : {128, 640, 896, 2048, 4096, 4864, 14336, 28672}) {
    for (int rows : {1, 131, 896, 4096, 128256}) {
      for (int tokens : {2, 8, 16, 17, 512}) {
        const TiledGeometry g = tiled_geometry(columns, {272, true}, rows, tokens, false, 132, kLimit);
        SCOPED_TRACE(std::to_string(columns) + " x " + std::to_string(rows) + ", " + std::to_string(tokens));
        EXPECT_GE(g.grid_y * g.tokens, tokens);
        EXPECT_LE(g.grid_x, (rows + kTileRows - 1) / kTileRows);
        EXPECT_LE(g.grid_z, slices(columns).count);
        EXPECT_TRUE(g.grid_z == 1 || g.grid_x <= kTiledCounters);
        EXPECT_TRUE(has_shared(g, kLimit));
        EXPECT_GE(g.ring, 1);
      }
    }
  }
}

}  // namespace
}  // namespace lane::test
