// F16 and BF16 repacked: 64 bytes a block in four planes of 16, eight weights each; and as stored, row after row. Their
// products take float activations.
#pragma once
#include "layout/packing.cuh"

namespace LANE_NAMESPACE {

/// 32 float activations, as a lane of a streamed product holds them.
struct FloatActivation {
  float4 x[8];
};

/// Two floats rounded to the weights' type in one word, the first in the low bits; and what the rounding left, rounded
/// likewise.
struct WordPair {
  uint32_t first, rest;
};

struct HalfWeight {
  static constexpr bool kBfloat = false;
  static __device__ __forceinline__ float2 pair(uint32_t bits) {
    return make_float2(__half2float(__ushort_as_half(static_cast<uint16_t>(bits))),
                       __half2float(__ushort_as_half(static_cast<uint16_t>(bits >> 16))));
  }
  static __device__ __forceinline__ uint32_t word(float low, float high) {
    return static_cast<uint32_t>(__half_as_ushort(__float2half(high))) << 16 | __half_as_ushort(__float2half(low));
  }
};
struct BfloatWeight {
  static constexpr bool kBfloat = true;
  static __device__ __forceinline__ float2 pair(uint32_t bits) {
    return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xFFFF0000));
  }
  /// To the nearest, to even; what is not finite may become another such.
  static __device__ __forceinline__ uint32_t round(float v) {
    const uint32_t bits = __float_as_uint(v);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  }
  static __device__ __forceinline__ uint32_t word(float low, float high) { return round(high) << 16 | round(low); }
};
template <class Weight>
__device__ __forceinline__ WordPair split_pair(float low, float high) {
  const uint32_t first = Weight::word(low, high);
  const float2 kept = Weight::pair(first);
  return {first, Weight::word(low - kept.x, high - kept.y)};
}

/// Eight columns of a slice: of which block, and which of its four planes.
struct FloatEntry {
  int block, plane;
};

template <class Weight>
struct RepackedFloats {
  using Words = Weight;
  static constexpr int kStoredElements = 1, kStoredBytes = 2, kBytes256 = 512;
  static constexpr bool kFloat = true, kSums = false;
  static constexpr float kTop = 1;  // activations are not quantized

  /// How a row is cut, and which columns its slice's 16 bytes number `i` are.
  static constexpr Slices row_slices(int columns) { return slices(columns); }
  static __device__ __forceinline__ FloatEntry entry(int i, int blocks) { return {i % blocks, i / blocks}; }

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    for (int plane = 0; plane < 4; plane++)
      copy_16(row + 16 * (plane * blocks + block), stored + 64 * (first + block) + 16 * plane);
  }

  static __device__ void decode(const uint8_t* row, int blocks, int block, float (&w)[32]) {
    for (int i = 0; i < 16; i++) {
      const float2 pair = Weight::pair(load_as<uint32_t>(row + 16 * (i / 4 * blocks + block) + 4 * (i % 4)));
      w[2 * i] = pair.x, w[2 * i + 1] = pair.y;
    }
  }

  /// The eight weights of a plane's entry.
  static __device__ __forceinline__ void unpack(const uint4& q, float (&w)[8]) {
    const float2 a = Weight::pair(q.x), b = Weight::pair(q.y), c = Weight::pair(q.z), d = Weight::pair(q.w);
    w[0] = a.x, w[1] = a.y, w[2] = b.x, w[3] = b.y, w[4] = c.x, w[5] = c.y, w[6] = d.x, w[7] = d.y;
  }

  /// sum plus the products with 32 activations, in the columns' order.
  static __device__ __forceinline__ float add(float sum, const uint8_t* row, int blocks, int block,
                                              const FloatActivation& activation) {
    const float4(&x)[8] = activation.x;
    LANE_UNROLL
    for (int plane = 0; plane < 4; plane++) {
      const uint4 q = load_as<uint4>(row + 16 * (plane * blocks + block));
      const float4 u = x[2 * plane], v = x[2 * plane + 1];
      const float2 a = Weight::pair(q.x), b = Weight::pair(q.y), c = Weight::pair(q.z), d = Weight::pair(q.w);
      sum = fmaf(b.y, u.w, fmaf(b.x, u.z, fmaf(a.y, u.y, fmaf(a.x, u.x, sum))));
      sum = fmaf(d.y, v.w, fmaf(d.x, v.z, fmaf(c.y, v.y, fmaf(c.x, v.x, sum))));
    }
    return sum;
  }
};
using RepackedF16 = RepackedFloats<HalfWeight>;
using RepackedBF16 = RepackedFloats<BfloatWeight>;

/// Rows as the checkpoint has them, for products on tensor cores.
template <class Weight>
struct StoredFloats {
  using Words = Weight;
  static constexpr int kBytes256 = 512;
  static constexpr bool kFloat = true, kSums = false;
  static constexpr float kTop = 1;
  static constexpr Slices row_slices(int columns) { return {1, columns / kBlockColumns, columns / kBlockColumns}; }
  static __device__ __forceinline__ FloatEntry entry(int i, int) { return {i / 4, i % 4}; }
};
using StoredF16 = StoredFloats<HalfWeight>;
using StoredBF16 = StoredFloats<BfloatWeight>;

}  // namespace LANE_NAMESPACE
