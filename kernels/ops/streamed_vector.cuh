// The vector of a streamed product: read once its producer has ended, normed and quantized by the block's own warps
// into shared memory, and taken from there into registers, one block of 32 columns a lane.
//
// A slice's vector lies in planes of 16 bytes a block: words 0 to 3 and 4 to 7 of the high bytes, the same of the low
// ones (one word: no low plane), then the scales, then the sums of integers. Float activations: eight planes of four.
#pragma once
#include "base/published.cuh"
#include "layout/activation.cuh"
#include "layout/floats.cuh"
#include "ops/row_norm.cuh"
#include "ops/streamed_geometry.h"

namespace LANE_NAMESPACE {

/// x [columns], and the weights of its RMS norm [columns] or null. The norm's factor is one number: it scales the sums
/// at the end, and the quantization need not wait for it.
struct StreamedInput {
  const float *x, *norm;
  float epsilon;
  static constexpr bool kPost = false, kPublished = false;
};
/// The same of an x that other blocks of the launch publish (base/published.cuh).
struct PublishedInput : StreamedInput {
  static constexpr bool kPublished = true;
};

/// The same of a sum that the block makes first: y = x / sqrt(mean(x^2) + post_epsilon) * post + carried, all
/// [columns]; `sum` is where one block writes it. To the bit what rms_norm (ops/norm.cuh) makes of x, post and carried.
struct PostNormedInput {
  const float *x, *norm;
  float epsilon;
  const float *post, *carried;
  float* sum;
  float post_epsilon;
  static constexpr bool kPost = true, kPublished = false;
};
/// The same of an x that other blocks of the launch publish.
struct PublishedPostNormedInput : PostNormedInput {
  static constexpr bool kPublished = true;
};

/// The factor of x's norm, in every thread: all of the block's call it, at least kRowNormThreads.
template <int Columns, class Input>
__device__ __forceinline__ float post_factor(const Input& in) {
  constexpr int kAtOnce = 4;  // of a thread's values
  __shared__ float scratch[kMostWarps];
  const int thread = static_cast<int>(threadIdx.x);
  float squares = 0;
  LANE_KEEP_LOOP
  for (int first = thread; first < Columns && thread < kRowNormThreads; first += kAtOnce * kRowNormThreads) {
    float held[kAtOnce];
    LANE_UNROLL
    for (int k = 0; k < kAtOnce; k++) {
      const int i = first + k * kRowNormThreads;
      held[k] = i >= Columns ? 0.f : Input::kPublished ? read_published(in.x + i) : __ldcg(in.x + i);
    }
    LANE_UNROLL
    for (int k = 0; k < kAtOnce && Input::kPublished; k++) {
      const int i = first + k * kRowNormThreads;
      if (i < Columns) held[k] = await_published(in.x + i, held[k], [] {});
    }
    LANE_UNROLL
    for (int k = 0; k < kAtOnce; k++) squares = fmaf(held[k], held[k], squares);
  }
  return rms_factor_of(squares, Columns, in.post_epsilon, scratch);
}

/// A warp's part of its slice's vector: pieces of 128 columns, Team apart; Blocks is the longest slice's length. `at`
/// is a lane's four columns of the warp's first piece.
template <int Blocks, int Team>
struct VectorPieces {
  static constexpr int kMost = (Blocks / 4 + Team - 1) / Team;
  float4 value[kMost];

  static __device__ __forceinline__ const float4* place(const float* at, int i) {
    return reinterpret_cast<const float4*>(at) + i * Team * 32;
  }
  template <class Load>
  __device__ __forceinline__ void read(const float* at, int pieces, int member, Load load) {
    LANE_UNROLL
    for (int i = 0; i < kMost; i++)
      if (member + i * Team < pieces) value[i] = load(place(at, i));
  }
  __device__ __forceinline__ void write(float* at, int pieces, int member) const {
    LANE_UNROLL
    for (int i = 0; i < kMost; i++)
      if (member + i * Team < pieces) reinterpret_cast<float4*>(at)[i * Team * 32] = value[i];
  }
  /// These values normed by `factor` and `weight`, with `carried` added.
  __device__ __forceinline__ void norm_and_add(float factor, const VectorPieces& weight, const VectorPieces& carried) {
    LANE_UNROLL
    for (int i = 0; i < kMost; i++) {
      const float4 v = value[i], w = weight.value[i], c = carried.value[i];
      value[i] = make_float4(normed_value(v.x, factor, w.x, 0.f, c.x), normed_value(v.y, factor, w.y, 0.f, c.y),
                             normed_value(v.z, factor, w.z, 0.f, c.z), normed_value(v.w, factor, w.w, 0.f, c.w));
    }
  }
  /// Asks for what other blocks of the launch publish. One lane asks for one of the warp's values until it is there,
  /// then all ask for all: a block that waits for long must not keep the L2 from those that it waits for.
  __device__ __forceinline__ void ask(const float* at, int pieces, int member, int lane) {
    if (member < pieces && lane == 0) (void)await_published(place(at, 0), read_published(place(at, 0)), pause_a_while);
    __syncwarp();
    read(at, pieces, member, [](const float4* p) { return read_published(p); });
  }
  /// What was asked for, once it is there.
  __device__ __forceinline__ void await(const float* at, int pieces, int member) {
    LANE_UNROLL
    for (int i = 0; i < kMost; i++)
      if (member + i * Team < pieces) value[i] = await_published(place(at, i), value[i], [] {});
  }
};

/// The largest integer of an activation for layout L.
template <class L, int Words>
constexpr float kQuantizeTop = Words == 2 ? L::kTop : 127.f;

struct QuantizeTop {
  float top, inverse;
};

/// Four columns of lane `lane`, whose eight neighbours hold the block; `top` is the largest integer. Writes words,
/// scale and, where `Sums`, the halves' sums.
template <int Words, int Blocks, bool Sums>
__device__ __forceinline__ void quantize_into(uint8_t* vector, float4 v, QuantizeTop top, int block, int lane) {
  // Adding 1.5 * 2^23 rounds to an integer in the low bits; half a low byte on top makes bytes 1 and 0 the two words,
  // the low one off by 128.
  constexpr float kMagic = 12582912.f + 128.f;
  const int w = lane & 7;
  float largest = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
  for (int o = 1; o < 8; o <<= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o));
  const float inverse = largest > 1e-30f ? __fdividef(top.top, largest) : 0.f;
  const uint32_t q[4] = {__float_as_uint(fmaf(v.x, inverse, kMagic)), __float_as_uint(fmaf(v.y, inverse, kMagic)),
                         __float_as_uint(fmaf(v.z, inverse, kMagic)), __float_as_uint(fmaf(v.w, inverse, kMagic))};
  const uint32_t low =
      __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410) ^ 0x80808080;
  uint8_t* word = vector + 16 * ((w >> 2) * Blocks + block) + 4 * (w & 3);
  if (Words == 2) {
    const uint32_t high = __byte_perm(__byte_perm(q[0], q[1], 0x0051), __byte_perm(q[2], q[3], 0x0051), 0x5410);
    store_as(word, high);
    store_as(word + 32 * Blocks, low);
  } else {
    store_as(word, low);
  }
  uint8_t *scales = vector + 32 * Words * Blocks, *sums = scales + 4 * Blocks;
  if (w == 0) store_as(scales + 4 * block, largest * top.inverse);
  if (!Sums) return;
  int sum = static_cast<int>(q[0] + q[1] + q[2] + q[3] - 4 * __float_as_uint(kMagic));
  for (int o = 1; o < 4; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if ((w & 3) == 0) store_as(sums + 8 * block + w, sum);
}

/// One block of the slice's vector, as lane `block` holds it. Where it is not `inside`, an activation of zeros.
template <int Words, int Blocks, bool Sums>
__device__ __forceinline__ Activation<Words> load_activation(const uint8_t* vector, int block, bool inside) {
  Activation<Words> a;
  LANE_UNROLL
  for (int plane = 0; plane < 2 * Words; plane++) {
    const int4 v = load_as<int4>(vector + 16 * (plane * Blocks + block));
    int* word = a.word[plane / 2] + 4 * (plane % 2);
    word[0] = v.x, word[1] = v.y, word[2] = v.z, word[3] = v.w;
  }
  const uint8_t *scales = vector + 32 * Words * Blocks, *sums = scales + 4 * Blocks;
  a.scale = inside ? load_as<float>(scales + 4 * block) : 0.f;
  const int2 sum = Sums ? load_as<int2>(sums + 8 * block) : make_int2(0, 0);
  a.sum[0] = sum.x, a.sum[1] = sum.y;
  return a;
}

/// The same for float activations.
template <int Blocks>
__device__ __forceinline__ void store_floats(uint8_t* vector, float4 v, int block, int lane) {
  store_as(vector + 16 * ((lane & 7) * Blocks + block), v);
}
template <int Blocks>
__device__ __forceinline__ FloatActivation load_floats(const uint8_t* vector, int block, bool inside) {
  FloatActivation a;
  LANE_UNROLL
  for (int i = 0; i < 8; i++)
    a.x[i] = inside ? load_as<float4>(vector + 16 * (i * Blocks + block)) : make_float4(0, 0, 0, 0);
  return a;
}

}  // namespace LANE_NAMESPACE
