// A block of a repacked row for tensor cores of halves: exact integers, and the floats that make weights of them.
//
// note [exact halves]
// A half holds every integer up to 2048. So a block goes in as its codes, or, where the format has integer scales
// beside a float one for 256 weights (a scale header), as scale * code, at most 63 * 31; minimums likewise. The floats
// then apply to sums: of 256 columns with a scale header, of half a block where each half has a scale, else of a block.
#pragma once
#include "layout/packing.cuh"

namespace LANE_NAMESPACE {

/// Weight i = factor[i / 16] * half[i] - minimum_factor * minimum: `minimum` exact as a half.
struct HalfFactors {
  float factor[2], minimum, minimum_factor;
  int multiplier;  // half[i] = multiplier * code[i]
};

template <class L>
struct HalfWeights {
  /// Columns that share a factor.
  static constexpr int kSpan = L::kScaleHeader ? 256 : L::kParts == 2 ? 16 : 32;

  static __device__ __forceinline__ HalfFactors factors(const uint8_t* row, int blocks, int block) {
    if constexpr (L::kScaleHeader) {
      const BlockScale s = L::header(row, blocks, block);
      return {{s.d, s.d}, static_cast<float>(s.minimum), s.dmin, s.scale};
    } else if constexpr (L::kParts == 2) {
      const auto s = L::scale(row, blocks, block);
      return {{s.d * static_cast<float>(s.half[0]), s.d * static_cast<float>(s.half[1])}, 0.f, 0.f, 1};
    } else if constexpr (L::kMinimums) {
      const auto s = L::scale(row, blocks, block);
      return {{s.scale, s.scale}, s.minimum, 1.f, 1};
    } else {
      const float scale = L::scale(row, blocks, block).scale;
      return {{scale, scale}, 0.f, 0.f, 1};
    }
  }
};

/// Codes as halves, times a scale header's scale where L has one: then they are not negative.
template <class L>
struct HalvesOfCodes {
#if defined(__CUDACC__)
  // 1024 + n has n in a half's low bits, for n up to 1023.
  __half2 times, zero;
  __device__ __forceinline__ explicit HalvesOfCodes(int multiplier)
      : times(__half2half2(__int2half_rn(multiplier))),
        zero(L::kScaleHeader ? __hmul2(times, __half2half2(__ushort_as_half(0xE400)))  // -1024
                             : __half2half2(__ushort_as_half(0xE480))) {}              // -1024 - 128
  __device__ __forceinline__ uint32_t pair(uint32_t from_zero, uint32_t selector) const {
    const uint32_t word = __byte_perm(from_zero, 0x64646464, selector);
    __half2 v;
    memcpy(&v, &word, 4);
    const __half2 result = L::kScaleHeader ? __hfma2(v, times, zero) : __hadd2(v, zero);
    uint32_t bits;
    memcpy(&bits, &result, 4);
    return bits;
  }
  __device__ __forceinline__ uint2 of(uint32_t bytes) const {
    const uint32_t from_zero = L::kScaleHeader ? bytes : bytes ^ 0x80808080;
    return make_uint2(pair(from_zero, 0x4140), pair(from_zero, 0x4342));
  }
#else
  int times;
  explicit HalvesOfCodes(int multiplier) : times(multiplier) {}
  uint2 of(uint32_t bytes) const {
    auto half = [&](int i) {
      const int code = static_cast<int8_t>(bytes >> 8 * i);
      return static_cast<uint32_t>(__half_as_ushort(__float2half(static_cast<float>(code * times))));
    };
    return make_uint2(half(0) | half(1) << 16, half(2) | half(3) << 16);
  }
#endif
};

}  // namespace LANE_NAMESPACE
