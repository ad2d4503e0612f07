// A block of a repacked row for tensor cores of halves: exact integers, and the floats that make weights of them.
//
// note [exact halves]
// A half holds every integer up to 2048. So a block goes in as its codes or, where the format has integer scales beside
// a float one for 256 weights, as scale * code; minimums likewise. The floats then apply to sums: of 256 columns, or of
// a block. Q6_K's products go up to 4,096: the halves lose a bit of some, which goes in for itself, as an integer of -1
// to 1, times activations of few bits.
//
// note [coarse weights]
// What halves lose of activations (note [half vectors]) is small, so weights for it have few bits: the upper byte of
// their half, which is an E5M2. It is the weight cut off, on the average 6 to 9% less.
#pragma once
#include "layout/packing.cuh"

namespace LANE_NAMESPACE {

/// Weight i = factor * scale * code[i] - minimum_factor * minimum: `minimum` exact as a half. The scale: HalfScales.
struct HalfFactors {
  float factor, minimum, minimum_factor;
};
/// Integer scales of two blocks' halves, as halves.
struct HalfScales {
  __half of[2][2];
};
/// Two bytes, of which each is `Offset` more than its value, as halves of their values times a power of two.
template <int Offset>
__device__ __forceinline__ void halves_of_bytes(uint32_t bytes, __half power, __half& first, __half& second) {
#if defined(__CUDACC__)
  const uint32_t word = __byte_perm(bytes, 0x64646464, 0x4140);  // 1024 + n has n in a half's low bits
  __half2 v;
  memcpy(&v, &word, 4);
  v = __hadd2(v, __half2half2(__ushort_as_half(0xE400 + Offset)));  // a half near 1024 has steps of 1
  if (Offset == 0) v = __hmul2(v, __half2half2(power));
  first = __low2half(v), second = __high2half(v);
#else
  const auto half = [&](uint32_t n) {
    const float value = static_cast<float>(static_cast<int>(n & 255) - Offset);
    return __float2half(Offset == 0 ? value * __half2float(power) : value);
  };
  first = half(bytes), second = half(bytes >> 8);
#endif
}

template <class L>
struct HalfWeights {
  static constexpr bool kIntegerScales = L::kScaleHeader || L::kParts == 2;
  /// Columns that share a factor.
  static constexpr int kSpan = kIntegerScales ? 256 : kBlockColumns;
  static constexpr bool kLosesBits = L::kMostProduct > 2048;
  /// Half i = scale * code[i] * kUnit, rounded.
  static constexpr float kUnit = kLosesBits ? 1.f / 128 : 1.f;

  static __device__ __forceinline__ HalfFactors factors(const uint8_t* row, int blocks, int block) {
    if constexpr (L::kScaleHeader) {
      const BlockScale s = L::header(row, blocks, block);
      return {s.d, static_cast<float>(s.minimum), s.dmin};
    } else if constexpr (L::kParts == 2) {
      const auto s = L::scale(row, blocks, block);
      return {s.d, 0.f, 0.f};
    } else {
      const auto s = L::scale(row, blocks, block);
      return {s.scale, s.minimum, 1.f};
    }
  }
  /// Of block `block`, an even one, and the next one; those of a scale header times a power of two, at most 1.
  static __device__ __forceinline__ HalfScales scales(const uint8_t* row, int blocks, int block, __half power) {
    if constexpr (L::kScaleHeader) {
      __half first, second;
      halves_of_bytes<0>(read_scale_pair(L::header_of(row, blocks, block), block), power, first, second);
      return {{{first, first}, {second, second}}};
    } else if constexpr (L::kParts == 2) {
      const uint32_t bytes = load_as<uint32_t>(L::scale_bytes(row, blocks, block)) ^ 0x80808080;
      HalfScales s;
      halves_of_bytes<128>(bytes, power, s.of[0][0], s.of[0][1]);
      halves_of_bytes<128>(bytes >> 16, power, s.of[1][0], s.of[1][1]);
      return s;
    } else {
      return {};
    }
  }
};

/// Four codes, which lie together, as halves. `coarse`: E5M2s, as `lost`, which is 2^8 times what the halves lose.
struct FourHalves {
  uint2 halves;
  uint32_t coarse, lost;
};

/// Codes as halves, times a scale where scales are integers.
template <class L>
struct HalvesOfCodes {
  static constexpr bool kLosesBits = HalfWeights<L>::kLosesBits;
  /// The upper bytes of 8, or of 1024, for the constructor. Compilers do not know that `none` is 0, so they keep them
  /// in a register, where they would otherwise load a constant for every use.
  static __device__ __forceinline__ uint32_t kept_powers(uint32_t none) {
    return (kLosesBits ? 0x48484848 : 0x64646464) | none;
  }
#if defined(__CUDACC__)
  // A half of exponent e has n in its low bits where it is 2^e + n * 2^(e - 10), for n up to 1023: n is an unsigned
  // code, or a signed one plus 128.
  static constexpr bool kSigned = !L::kScaleHeader;
  static constexpr uint16_t kNoCode = kLosesBits ? 0xC880 : kSigned ? 0xE480 : 0xE400;  // -(8 + 1), -(1024 [+ 128])
  uint32_t powers;
  __half2 times, zero;
  __device__ __forceinline__ HalvesOfCodes(__half scale, uint32_t kept_powers)
      : powers(kept_powers), times(__half2half2(scale)), zero(__half2half2(__ushort_as_half(kNoCode))) {
    if (HalfWeights<L>::kIntegerScales && !kLosesBits) zero = __hmul2(times, zero);  // exact
  }
  static __device__ __forceinline__ uint32_t bits(__half2 v) {
    uint32_t word;
    memcpy(&word, &v, 4);
    return word;
  }
  __device__ __forceinline__ void pair(uint32_t from_zero, uint32_t selector, uint32_t& halves, uint32_t& lost) const {
    const uint32_t word = __byte_perm(from_zero, powers, selector);
    __half2 v;
    memcpy(&v, &word, 4);
    if constexpr (kLosesBits) {
      const __half2 code = __hadd2(v, zero), product = __hmul2(code, times);
      halves = bits(product), lost = bits(__hfma2(code, times, __hneg2(product)));
    } else {
      halves = bits(HalfWeights<L>::kIntegerScales ? __hfma2(v, times, zero) : __hadd2(v, zero));
    }
  }
  __device__ __forceinline__ FourHalves of(uint32_t bytes) const {
    const uint32_t from_zero = kSigned ? bytes ^ 0x80808080 : bytes;
    FourHalves four{};
    uint2 lost{};
    pair(from_zero, 0x4140, four.halves.x, lost.x), pair(from_zero, 0x4342, four.halves.y, lost.y);
    four.coarse = __byte_perm(four.halves.x, four.halves.y, 0x7531);
    if constexpr (kLosesBits) {
      // 0 or +-2^-7, whose exponent is one bit.
      const uint32_t upper = __byte_perm(lost.x, lost.y, 0x7531);
      four.lost = upper + (upper & 0x20202020);
    }
    return four;
  }
#else
  float times;
  HalvesOfCodes(__half scale, uint32_t) : times(HalfWeights<L>::kIntegerScales ? __half2float(scale) : 1.f) {}
  FourHalves of(uint32_t bytes) const {
    FourHalves four{};
    uint16_t halves[4];
    for (int i = 0; i < 4; i++) {
      const float exact = static_cast<float>(static_cast<int8_t>(bytes >> 8 * i)) * times * HalfWeights<L>::kUnit;
      const __half half = __float2half(exact), lost = __float2half((exact - __half2float(half)) * 256.f);
      halves[i] = __half_as_ushort(half);
      four.coarse |= static_cast<uint32_t>(halves[i] >> 8) << 8 * i;
      four.lost |= static_cast<uint32_t>(__half_as_ushort(lost) >> 8) << 8 * i;
    }
    four.halves = make_uint2(halves[0] | static_cast<uint32_t>(halves[1]) << 16,
                             halves[2] | static_cast<uint32_t>(halves[3]) << 16);
    return four;
  }
#endif
};

}  // namespace LANE_NAMESPACE
