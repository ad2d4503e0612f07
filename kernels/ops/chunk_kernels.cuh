// The kernels of ops/chunk_product.cuh that a geometry asks for, for who launches them without lanec: checks, benches
// and tests.
#pragma once
#include "ops/chunk_product.cuh"

namespace LANE_NAMESPACE {

/// `of.template kernel<Tokens, Groups, Splits>()` for those of the geometry.
template <class Of>
auto chunk_kernel_of(const ChunkGeometry& g, Of of) {
  return g.tokens == 128  ? of.template kernel<128, 2, 1>()
         : g.tokens == 64 ? (g.groups == 2 ? of.template kernel<64, 2, 1>() : of.template kernel<64, 1, 2>())
         : g.groups == 4  ? of.template kernel<32, 4, 1>()
         : g.groups == 2  ? of.template kernel<32, 2, 2>()
                          : of.template kernel<32, 1, most_splits(Of::kColumns)>();
}

template <class L, int Columns, int Words>
struct ChunkProduct {
  static constexpr int kColumns = Columns;
  template <int Tokens, int Groups, int Splits>
  auto kernel() const {
    return chunk_product<L, Columns, Words, Tokens, Groups, Splits>;
  }
};
template <class L, int Columns, int Words>
struct ChunkGatedProduct {
  static constexpr int kColumns = Columns;
  template <int Tokens, int Groups, int Splits>
  auto kernel() const {
    return chunk_gated_product<L, Columns, Words, Tokens, Groups, Splits>;
  }
};
template <class L0, class L1, class L2, int Columns, int Words>
struct ChunkProducts {
  static constexpr int kColumns = Columns;
  template <int Tokens, int Groups, int Splits>
  auto kernel() const {
    return chunk_products<L0, L1, L2, Columns, Words, Tokens, Groups, Splits>;
  }
};

}  // namespace LANE_NAMESPACE
