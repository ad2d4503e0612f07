// The kernels that a geometry asks for, for who launches them without lanec: checks, benches and tests.
#pragma once
#include "ops/mma_product.cuh"
#include "ops/wide_product.cuh"

namespace LANE_NAMESPACE {

template <class L, int Columns>
auto wide_kernel(const WideGeometry& g) {
  return g.groups == 4   ? wide_product<L, Columns, 4, 2>
         : g.groups == 2 ? wide_product<L, Columns, 2, 1>
                         : wide_product<L, Columns, 1, 1>;
}
template <class L, int Columns>
auto wide_gated_kernel(const WideGeometry& g) {
  return g.groups == 4   ? wide_gated_product<L, Columns, 4, 2>
         : g.groups == 2 ? wide_gated_product<L, Columns, 2, 1>
                         : wide_gated_product<L, Columns, 1, 1>;
}

/// A block has as many rows as tokens, or twice as many.
template <class L, int Columns, int Tokens>
auto mma_kernel_for(bool twice) {
  return twice ? mma_product<L, Columns, 2 * Tokens, Tokens> : mma_product<L, Columns, Tokens, Tokens>;
}
template <class L, int Columns>
auto mma_kernel(const MmaGeometry& g) {
  const bool twice = g.rows > g.tokens;
  return g.tokens == 16   ? mma_kernel_for<L, Columns, 16>(twice)
         : g.tokens == 32 ? mma_kernel_for<L, Columns, 32>(twice)
                          : mma_kernel_for<L, Columns, 64>(twice);
}
template <class L, int Columns, int Tokens>
auto mma_gated_kernel_for(bool twice) {
  return twice ? mma_gated_product<L, Columns, 2 * Tokens, Tokens> : mma_gated_product<L, Columns, Tokens, Tokens>;
}
template <class L, int Columns>
auto mma_gated_kernel(const MmaGeometry& g) {
  const bool twice = g.rows > g.tokens;
  return g.tokens == 16   ? mma_gated_kernel_for<L, Columns, 16>(twice)
         : g.tokens == 32 ? mma_gated_kernel_for<L, Columns, 32>(twice)
                          : mma_gated_kernel_for<L, Columns, 64>(twice);
}

}  // namespace LANE_NAMESPACE
