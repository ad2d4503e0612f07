// The vectors of a chunk's tokens in two words a value, normed once for all products that read them
// (ops/wide_product.cuh, ops/mma_product.cuh):
//
//   split_vectors<L, Columns, Matrices>(out, x, norm, epsilon, tokens)
//     out      split_vectors_bytes(Columns, tokens), see note [split vectors]
//     x        [tokens][Columns]; norm: the weights of its RMS norm [Columns] or null
//     L        a float layout: the words are of its weights' type and in its columns' order; Matrices: 2 for a gated
//              product, else 1
//     grid     a block a token, and for each further one that a block of the products reads: those get zeros
//     threads, shared   as for float_vectors
//
// bf16: 16 bits of a value, an error up to 2^-18 of it. Halves: 22 bits of what is above 2^-17 of the token's largest
// value, by which all are scaled to below 2^15, a power of two; the error is up to 2^-23 of the value or 2^-40 of the
// largest. May be launched dependently.
#pragma once
#include "base/warpgroup_mma.cuh"
#include "ops/quantize_vectors.cuh"
#include "ops/wide_geometry.h"

namespace LANE_NAMESPACE {

/// A power of two, and one over it.
struct TokenScale {
  float scale, inverse;
};

/// What brings the largest of the vectors in shared memory to [2^14, 2^15), as far as exponents go; by the whole block.
template <class S>
__device__ __forceinline__ TokenScale token_scale(const uint8_t* vectors) {
  __shared__ float largest[S::kWarps];
  float most = 0;
  for (int i = threadIdx.x; i < S::kColumns; i += S::kWarps * 32) {
    const int entry = i / 4, slice = entry / (8 * S::kSlices.full), at = entry % (8 * S::kSlices.full);
    // The last slice's planes have room that nobody wrote.
    if (at % S::kSlices.full < S::blocks(slice)) most = fmaxf(most, fabsf(load_as<float>(vectors + 4 * i)));
  }
  for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  if ((threadIdx.x & 31) == 0) largest[threadIdx.x >> 5] = most;
  __syncthreads();
  for (int i = 0; i < S::kWarps; i++) most = fmaxf(most, largest[i]);
  constexpr uint32_t kMost = 253;  // its inverse is a normal number too
  const uint32_t exponent = __float_as_uint(most) >> 23, wanted = 2 * 127 + 14 - exponent;
  const uint32_t scale = wanted < kMost ? wanted : kMost;
  return {__uint_as_float(scale << 23), __uint_as_float((2 * 127 - scale) << 23)};
}

template <class L, int Columns, int Matrices>
__global__ __launch_bounds__(32 * streamed_warps(Columns, Matrices == 2)) void split_vectors(
    uint8_t* out, const float* x, const float* norm, float epsilon, int tokens) {
  using S = StreamedShape<Columns, kFloatActivations, Matrices, L>;
  LANE_DYNAMIC_SHARED(uint8_t, vectors);
  admit_consumer();
  const float factor = make_token<S>(x, norm, epsilon, tokens, vectors);
  TokenScale s{1, 1};
  if constexpr (!L::Words::kBfloat) s = token_scale<S>(vectors);
  const int token = static_cast<int>(blockIdx.x), row = token % kWideTokens;
  uint8_t* tiles = out + token / kWideTokens * split_tile_bytes(Columns);
  for (int i = threadIdx.x; i < Columns / 8; i += S::kWarps * 32) {
    const int slice = i / (4 * S::kSlices.full), entry = i % (4 * S::kSlices.full), blocks = S::blocks(slice);
    const FloatEntry at = L::entry(entry, blocks);
    const uint8_t* from = vectors + slice * S::kVectorBytes + 16 * (at.plane * 2 * S::kSlices.full + at.block);
    const float4 u = load_as<float4>(from), v = load_as<float4>(from + 16 * S::kSlices.full);
    const WordPair words[4] = {split_pair<typename L::Words>(u.x * s.scale, u.y * s.scale),
                               split_pair<typename L::Words>(u.z * s.scale, u.w * s.scale),
                               split_pair<typename L::Words>(v.x * s.scale, v.y * s.scale),
                               split_pair<typename L::Words>(v.z * s.scale, v.w * s.scale)};
    uint8_t* to = tiles + i / 8 * (2 * kWideTileBytes) + swizzled(row, i % 8);
    store_as(to, make_uint4(words[0].first, words[1].first, words[2].first, words[3].first));
    store_as(to + kWideTileBytes, make_uint4(words[0].rest, words[1].rest, words[2].rest, words[3].rest));
  }
  if (threadIdx.x == 0) store_as(tiles + split_tile_bytes(Columns) - 4 * (kWideTokens - row), factor * s.inverse);
}

}  // namespace LANE_NAMESPACE
