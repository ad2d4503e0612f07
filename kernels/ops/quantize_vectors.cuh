// The vectors of several tokens, quantized once for all products that read them (ops/tiled_product.cuh):
//
//   quantize_vectors<L, Columns, Words, Matrices>(out, x, norm, epsilon, tokens)
//     out      quantized_vectors_bytes(Columns, Words, tokens), see note [quantized vectors]
//     x        [tokens][Columns]; norm: the weights of its RMS norm [Columns] or null
//     L        a layout of the matrices: the largest integer depends on it; Matrices: 2 for a gated product, else 1
//     grid     kTokenGroup blocks for each begun group of tokens, of 32 * streamed_warps(Columns, Matrices == 2);
//     without
//              a norm as many such rows of blocks as one likes, which share the slices
//     threads shared   streamed_vector_bytes(Words, slices.full) * slices.count
//
// A block makes a token's vector just as a block of a streamed product does, by the same functions and in the same
// order: so the products have the same bits. May be launched dependently.
#pragma once
#include "ops/streamed_product.cuh"
#include "ops/tiled_geometry.h"

namespace LANE_NAMESPACE {

/// A slice's vector in shared memory to its place among eight tokens' vectors.
template <class S>
__device__ __forceinline__ void store_slice(uint8_t* group, int token, int slice, const uint8_t* vector) {
  constexpr int kBlocks = S::kColumns / kBlockColumns, kFull = S::kSlices.full;
  uint8_t* pairs = group + kBlocks * kTokenGroup * 32 * S::kWords;
  const int blocks = S::blocks(slice), first = slice * kFull;
  for (int i = threadIdx.x; i < 4 * blocks; i += S::kWarps * 32) {
    const int block = i >> 2, c = i & 3;
    uint8_t* to = group + ((first + block) * kTokenGroup + token) * 32 * S::kWords + 8 * S::kWords * c;
    for (int plane = 0; plane < 2 * S::kWords; plane++)
      store_as(to + 4 * plane, load_as<uint32_t>(vector + 16 * (plane * kFull + block) + 4 * c));
    if (c) continue;
    const uint8_t* scales = vector + 32 * S::kWords * kFull;
    const float scale = load_as<float>(scales + 4 * block);
    const int2 sum = S::kSums ? load_as<int2>(scales + 4 * kFull + 8 * block) : make_int2(0, 0);
    store_as(pairs + ((first + block) * kTokenGroup + token) * 8,
             make_float2(scale, activation_total(scale, sum.x, sum.y)));
  }
}

/// Whether this block makes a slice.
__device__ __forceinline__ bool makes_slice(int slice) {
  return slice % static_cast<int>(gridDim.y) == static_cast<int>(blockIdx.y);
}

/// Token blockIdx.x's vector, normed and as S has it: this block's slices, each at its place in shared memory; zeros
/// where there is no such token. Returns its norm factor. Waits for the producer.
template <class S>
__device__ __forceinline__ float make_token(const float* x, const float* norm, float epsilon, int tokens,
                                            uint8_t* vectors) {
  __shared__ float squares[S::kWarps];
  const int token = static_cast<int>(blockIdx.x), warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int slice = warp / S::kTeam, member = warp % S::kTeam;
  const bool works = slice < S::kSlices.count && makes_slice(slice), normed = S::kNorms && norm;
  if (works) {
    const int pieces = S::blocks(slice) / 4, column = slice * S::kSlices.full * kBlockColumns + 128 * member + 4 * lane;
    VectorPieces<S::kSlices.full, S::kTeam> weights{}, values{};
    if (normed) weights.read(norm + column, pieces, member, read_here);
    await_producer();
    if (token < tokens)
      values.read(x + static_cast<int64_t>(token) * S::kColumns + column, pieces, member,
                  [](const float4* p) { return __ldcg(p); });
    StreamedWarp w{};
    w.lane = lane, w.member = member, w.blocks = S::blocks(slice);
    const float own = sum_row(make_vector<S>(values, weights, normed, w, S::top(0), vectors + slice * S::kVectorBytes));
    if (lane == 0) squares[warp] = own;
  } else {
    await_producer();
  }
  __syncthreads();
  return norm_factor<S>(StreamedInput{x, norm, epsilon}, squares);
}

template <class L, int Columns, int Words, int Matrices>
__global__ __launch_bounds__(32 * streamed_warps(Columns, Matrices == 2)) void quantize_vectors(
    uint8_t* out, const float* x, const float* norm, float epsilon, int tokens) {
  using S = StreamedShape<Columns, Words, Matrices, L>;
  LANE_DYNAMIC_SHARED(uint8_t, vectors);
  admit_consumer();
  const float factor = make_token<S>(x, norm, epsilon, tokens, vectors);
  const int token = static_cast<int>(blockIdx.x), place = token % kTokenGroup;
  uint8_t* group = out + static_cast<int64_t>(token / kTokenGroup) * token_group_bytes(Columns, Words);
  for (int s = static_cast<int>(blockIdx.y); s < S::kSlices.count; s += static_cast<int>(gridDim.y))
    store_slice<S>(group, place, s, vectors + s * S::kVectorBytes);
  if (blockIdx.y) return;
  if (threadIdx.x == 0) store_as(group + token_group_bytes(Columns, Words) - 4 * (kTokenGroup - place), factor);
  auto* counters = reinterpret_cast<int*>(out + tiled_counters_offset(Columns, Words, tokens));
  if (blockIdx.x == 0 && threadIdx.x < kTiledCounters) counters[threadIdx.x] = 0;
}

}  // namespace LANE_NAMESPACE
