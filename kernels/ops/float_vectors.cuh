// The vectors of several tokens as floats, normed once for all products that read them (ops/batched_product.cuh):
//
//   float_vectors<L, Columns, Matrices>(out, x, norm, epsilon, tokens)
//     out      float_vectors_bytes(Columns, tokens), see note [float vectors]
//     x        [tokens][Columns]; norm: the weights of its RMS norm [Columns] or null
//     L        a float layout; Matrices: 2 for a gated product, else 1
//     grid, threads, shared   as for quantize_vectors, with kFloatActivations for Words
//
// The values and the norm's factor have the bits that a streamed product makes. May be launched dependently.
#pragma once
#include "ops/batched_geometry.h"
#include "ops/quantize_vectors.cuh"

namespace LANE_NAMESPACE {

template <class L, int Columns, int Matrices>
__global__ __launch_bounds__(32 * streamed_warps(Columns, Matrices == 2)) void float_vectors(
    uint8_t* out, const float* x, const float* norm, float epsilon, int tokens) {
  using S = StreamedShape<Columns, kFloatActivations, Matrices, L>;
  LANE_DYNAMIC_SHARED(uint8_t, vectors);
  admit_consumer();
  const float factor = make_token<S>(x, norm, epsilon, tokens, vectors);
  const int token = static_cast<int>(blockIdx.x), place = token % kTokenGroup;
  uint8_t* group = out + static_cast<int64_t>(token / kTokenGroup) * float_group_bytes(Columns);
  constexpr int kEntries = S::kVectorBytes / 16;  // of a slice
  for (int i = threadIdx.x; i < S::kSlices.count * kEntries; i += S::kWarps * 32)
    store_as(group + i / kEntries * float_slice_bytes(Columns) + place * S::kVectorBytes + i % kEntries * 16,
             load_as<uint4>(vectors + 16 * i));
  if (threadIdx.x == 0) store_as(group + float_group_bytes(Columns) - 4 * (kTokenGroup - place), factor);
}

}  // namespace LANE_NAMESPACE
