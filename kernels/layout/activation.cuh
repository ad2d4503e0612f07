// A quantized activation as a lane of a streamed product holds it, and its dot products with codes.
//
// note [one arithmetic of a block]
// A block's share of a row's sum comes from exact integers, sums of code times activation, by a few float operations:
// the layout's combine(). Every product of repacked matrices, of one vector or of many, on dot products or on tensor
// cores, gets the same integers and calls it; so they differ in no bit as long as they add blocks in the same order.
#pragma once
#include "layout/packing.cuh"

namespace LANE_NAMESPACE {

__device__ __forceinline__ float activation_total(float scale, int sum0, int sum1) {
  return scale * static_cast<float>(sum0 + sum1);
}

/// One block of 32 columns in Words int8 words: value i = scale * (256 * word[0] + word[1]), or scale * word[0].
/// `sum` is of the halves' integers, where the layout's kSums asks for them.
template <int Words>
struct Activation {
  int word[Words][8];  // four bytes each, in the codes' order
  float scale;
  int sum[2];
  /// The sum of the block's activations, as combine() takes it.
  __device__ __forceinline__ float total() const { return activation_total(scale, sum[0], sum[1]); }
};

/// Four bytes each, a's unsigned.
__device__ __forceinline__ int dot_unsigned(uint32_t a, int b, int c) {
#ifdef __CUDA_ARCH__
  int d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#else
  for (int i = 0; i < 4; i++) c += static_cast<int>(a >> 8 * i & 255) * static_cast<int8_t>(b >> 8 * i);
  return c;
#endif
}
__device__ __forceinline__ int dot_signed(uint32_t a, int b, int c) { return __dp4a(static_cast<int>(a), b, c); }

/// The sum over words [First, First + Count) of code words times activation words, plus c, in units of the activation's
/// scale. The two words' sums do not wait for each other.
template <int First, int Count, bool Unsigned = false, int Words>
__device__ __forceinline__ int dot_words(const uint32_t* codes, const Activation<Words>& x, int c) {
  int sum[Words] = {};
  sum[Words - 1] = c;
  LANE_UNROLL
  for (int word = 0; word < Words; word++) {
    LANE_UNROLL
    for (int i = First; i < First + Count; i++)
      sum[word] = Unsigned ? dot_unsigned(codes[i], x.word[word][i], sum[word])
                           : dot_signed(codes[i], x.word[word][i], sum[word]);
  }
  return Words == 2 ? sum[0] * 256 + sum[Words - 1] : sum[0];
}
template <int Words>
__device__ __forceinline__ int dot_block(const uint32_t (&codes)[8], const Activation<Words>& x, int c) {
  return dot_words<0, 4>(codes, x, c) + dot_words<4, 4>(codes, x, 0);
}

}  // namespace LANE_NAMESPACE
