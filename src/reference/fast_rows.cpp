#include "fast_rows.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

// note [wide clones]
// The loops below are plain; the compiler makes vector code of them, once for any x86-64 and once for CPUs with AVX2,
// chosen when the program starts. Every weight is rounded once, so both clones decode the same bits.
#define LANE_INLINE inline __attribute__((always_inline))

namespace lane::reference {
namespace {

LANE_INLINE float half_at(const uint8_t* p) {
  _Float16 h;
  std::memcpy(&h, p, sizeof h);
  return float(h);
}

/// Half precision by integers without a branch, which the compiler makes vector code of; its own conversion it does
/// not. No step is a subnormal float: those are slow.
LANE_INLINE void f16_row(const uint8_t* b, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, b + 2 * i, sizeof half);
    const uint32_t exponent = half & 0x7c00, rebias = 112u << 23;  // from 15 to 127; once more to reach infinity
    const uint32_t normal = (uint32_t(half & 0x7fff) << 13) + rebias + uint32_t(exponent == 0x7c00) * rebias;
    const uint32_t subnormal = std::bit_cast<uint32_t>(float(half & 0x3ff) * 0x1p-24f);
    const uint32_t is_subnormal = -uint32_t(exponent == 0);
    const uint32_t value = (subnormal & is_subnormal) | (normal & ~is_subnormal);
    y[i] = std::bit_cast<float>(value | uint32_t(half & 0x8000) << 16);
  }
}

LANE_INLINE void bf16_row(const uint8_t* b, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) {
    uint16_t high;
    std::memcpy(&high, b + 2 * i, sizeof high);
    y[i] = std::bit_cast<float>(uint32_t(high) << 16);
  }
}

/// Blocks of 32: a scale, for some an offset, for some the fifth bits, then nibbles: 16 low ones and 16 high ones.
template <bool kOffset, bool kFifthBit>
LANE_INLINE void nibbles(const uint8_t* b, float* y) {
  const float d = half_at(b);
  const float offset = kOffset ? half_at(b + 2) : d * (kFifthBit ? -16 : -8);
  const uint8_t* q = b + (kOffset ? 4 : 2);
  uint32_t fifth = 0;
  if (kFifthBit) {
    std::memcpy(&fifth, q, sizeof fifth);
    q += sizeof fifth;
  }
  for (int i = 0; i < 16; ++i) {
    const int low = q[i] & 15, high = q[i] >> 4;
    y[i] = d * float(low | int(fifth >> i & 1) << 4) + offset;
    y[i + 16] = d * float(high | int(fifth >> (i + 16) & 1) << 4) + offset;
  }
}

LANE_INLINE void q8_0(const uint8_t* b, float* y) {
  const float d = half_at(b);
  for (int i = 0; i < 32; ++i) y[i] = d * float(int8_t(b[2 + i]));
}

/// The j-th of eight 6-bit scales and offsets, packed in 12 bytes.
LANE_INLINE void scale_and_offset(const uint8_t* s, int j, int* scale, int* offset) {
  *scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  *offset = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
}

/// Blocks of 256 in eight parts of 32; parts 2j and 2j + 1 share bytes, low and high nibbles.
template <bool kFifthBit>
LANE_INLINE void k_nibbles(const uint8_t* b, float* y) {
  const float d = half_at(b), m = half_at(b + 2);
  const uint8_t* fifth = b + 16;
  const uint8_t* q = b + (kFifthBit ? 48 : 16);
  for (int part = 0; part < 8; ++part) {
    int scale, offset;
    scale_and_offset(b + 4, part, &scale, &offset);
    const float ds = d * float(scale), ms = m * float(offset);
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      int v = q[part / 2 * 32 + i] >> shift & 15;
      if (kFifthBit) v |= (fifth[i] >> part & 1) << 4;
      y[part * 32 + i] = ds * float(v) - ms;
    }
  }
}

/// Blocks of 256 in two halves: four low bits, two high bits, a signed scale for each 16.
LANE_INLINE void q6_k(const uint8_t* b, float* y) {
  const float d = half_at(b + 208);
  for (int part = 0; part < 8; ++part) {
    const int half = part / 4, quarter = part % 4;
    const uint8_t* low = b + half * 64 + quarter % 2 * 32;
    const uint8_t* high = b + 128 + half * 32;
    for (int run = 0; run < 2; ++run) {
      const float scale = d * float(int8_t(b[192 + part * 2 + run]));
      for (int i = run * 16; i < run * 16 + 16; ++i) {
        const int v = (low[i] >> quarter / 2 * 4 & 15) | (high[i] >> quarter * 2 & 3) << 4;
        y[part * 32 + i] = scale * float(v - 32);
      }
    }
  }
}

/// Where Q2_K and Q3_K keep the two low bits of the g-th 16 weights: bytes from `at` on, shifted.
struct TwoBits {
  int at, shift;
};
LANE_INLINE TwoBits two_bits(int g) { return {g / 8 * 32 + g % 2 * 16, g % 8 / 2 * 2}; }

LANE_INLINE void q2_k(const uint8_t* b, float* y) {
  const float d = half_at(b + 80), m = half_at(b + 82);
  for (int g = 0; g < 16; ++g) {
    const TwoBits bits = two_bits(g);
    const float scale = d * float(b[g] & 15), offset = m * float(b[g] >> 4);
    for (int i = 0; i < 16; ++i) y[g * 16 + i] = scale * float(b[16 + bits.at + i] >> bits.shift & 3) - offset;
  }
}

/// The third bit is stored inverted, in the first 32 bytes: bit j of a byte is of part j of 32.
LANE_INLINE void q3_k(const uint8_t* b, float* y) {
  const float d = half_at(b + 108);
  const uint8_t* s = b + 96;
  for (int g = 0; g < 16; ++g) {
    const TwoBits bits = two_bits(g);
    const int low = s[g % 8] >> g / 8 * 4 & 15, high = s[8 + g % 4] >> g / 4 * 2 & 3;
    const float scale = d * float((low | high << 4) - 32);
    for (int i = 0; i < 16; ++i) {
      const int third = b[g % 2 * 16 + i] >> g / 2 & 1;
      y[g * 16 + i] = scale * float((b[32 + bits.at + i] >> bits.shift & 3) + third * 4 - 4);
    }
  }
}

/// The sixteen levels of IQ4_NL and IQ4_XS.
constexpr float kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

LANE_INLINE void levels(const uint8_t* q, float scale, float* y) {
  for (int i = 0; i < 16; ++i) {
    y[i] = scale * kLevels[q[i] & 15];
    y[i + 16] = scale * kLevels[q[i] >> 4];
  }
}

LANE_INLINE void iq4_nl(const uint8_t* b, float* y) { levels(b + 2, half_at(b), y); }

LANE_INLINE void iq4_xs(const uint8_t* b, float* y) {
  const float d = half_at(b);
  const int high = b[2] | b[3] << 8;
  for (int part = 0; part < 8; ++part) {
    const int scale = (b[4 + part / 2] >> part % 2 * 4 & 15) | (high >> part * 2 & 3) << 4;
    levels(b + 8 + part * 16, d * float(scale - 32), y + part * 32);
  }
}

/// Twice the e2m1 values, so that they are integers; the scale's exponent is less one for it.
constexpr float kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

LANE_INLINE void mxfp4(const uint8_t* b, float* y) {
  const uint32_t e = b[0];  // 2^-128 and 2^-127 are subnormal floats
  const float scale = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  for (int i = 0; i < 16; ++i) {
    y[i] = scale * kTwiceE2m1[b[1 + i] & 15];
    y[i + 16] = scale * kTwiceE2m1[b[1 + i] >> 4];
  }
}

/// Any format by its exact decode, a piece at a time.
void decode_by_doubles(const Format& format, const uint8_t* blocks, size_t n, float* out) {
  double piece[256];
  const size_t step = 256 / size_t(format.block_elements) * size_t(format.block_elements);
  for (size_t at = 0; at < n; at += step) {
    const size_t count = std::min(step, n - at);
    format.decode(reinterpret_cast<const std::byte*>(blocks) + format.row_bytes(at), count, piece);
    for (size_t i = 0; i < count; ++i) out[at + i] = float(piece[i]);
  }
}

template <void (*kDecode)(const uint8_t*, float*)>
LANE_INLINE void each_block(const Format& format, const uint8_t* blocks, size_t n, float* out) {
  const size_t elements = size_t(format.block_elements), bytes = size_t(format.block_bytes), count = n / elements;
  for (size_t i = 0; i < count; ++i) kDecode(blocks + i * bytes, out + i * elements);
}

/// A format without a case here is decoded exactly and then rounded, which is slower.
LANE_INLINE void decode_inline(const Format& format, const uint8_t* blocks, size_t n, float* out) {
  switch (FormatId(format.id)) {
    case FormatId::F32:
      std::memcpy(out, blocks, n * sizeof(float));
      return;
    case FormatId::F16:
      return f16_row(blocks, n, out);
    case FormatId::BF16:
      return bf16_row(blocks, n, out);
    case FormatId::Q4_0:
      return each_block<nibbles<false, false>>(format, blocks, n, out);
    case FormatId::Q4_1:
      return each_block<nibbles<true, false>>(format, blocks, n, out);
    case FormatId::Q5_0:
      return each_block<nibbles<false, true>>(format, blocks, n, out);
    case FormatId::Q5_1:
      return each_block<nibbles<true, true>>(format, blocks, n, out);
    case FormatId::Q8_0:
      return each_block<q8_0>(format, blocks, n, out);
    case FormatId::Q4_K:
      return each_block<k_nibbles<false>>(format, blocks, n, out);
    case FormatId::Q5_K:
      return each_block<k_nibbles<true>>(format, blocks, n, out);
    case FormatId::Q6_K:
      return each_block<q6_k>(format, blocks, n, out);
    case FormatId::Q2_K:
      return each_block<q2_k>(format, blocks, n, out);
    case FormatId::Q3_K:
      return each_block<q3_k>(format, blocks, n, out);
    case FormatId::IQ4_NL:
      return each_block<iq4_nl>(format, blocks, n, out);
    case FormatId::IQ4_XS:
      return each_block<iq4_xs>(format, blocks, n, out);
    case FormatId::MXFP4:
      return each_block<mxfp4>(format, blocks, n, out);
    default:
      return decode_by_doubles(format, blocks, n, out);
  }
}

LANE_INLINE float dot_inline(const float* a, const float* b, size_t n) {
  constexpr size_t kLanes = 32;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * b[i + l];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  for (size_t width = kLanes / 2; width > 0; width /= 2)
    for (size_t l = 0; l < width; ++l) sums[l] += sums[l + width];
  return sums[0];
}

#if defined(__x86_64__)
// In this order: a function of the wide target inlines the plain loops and compiles them for itself.
__attribute__((target("avx2,fma,f16c"))) void decode_wide(const Format& format, const uint8_t* blocks, size_t n,
                                                          float* out) {
  decode_inline(format, blocks, n, out);
}
__attribute__((target("avx2,fma,f16c"))) float dot_wide(const float* a, const float* b, size_t n) {
  return dot_inline(a, b, n);
}
const bool kWide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#else
void decode_wide(const Format& format, const uint8_t* blocks, size_t n, float* out) {
  decode_inline(format, blocks, n, out);
}
float dot_wide(const float* a, const float* b, size_t n) { return dot_inline(a, b, n); }
constexpr bool kWide = false;
#endif

}  // namespace

void decode_floats(const Format& format, const std::byte* blocks, size_t n, float* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(blocks);
  kWide ? decode_wide(format, bytes, n, out) : decode_inline(format, bytes, n, out);
}

float dot_floats(const float* a, const float* b, size_t n) { return kWide ? dot_wide(a, b, n) : dot_inline(a, b, n); }

}  // namespace lane::reference
