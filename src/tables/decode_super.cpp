// Super-blocks of 256: groups of 16 or 32 elements with small integer scales under one or two half-precision ones.
#include "decode.h"

namespace lane::decode {
namespace {

/// Two-bit element e of 64 bytes: each half of 128 elements has 32 bytes, read four times at rising shifts.
int two_bits(const uint8_t* packed, int e) { return (packed[e / 128 * 32 + e % 32] >> (e % 128 / 32 * 2)) & 3; }

/// Four-bit element e of 128 bytes: 32 bytes hold two groups of 32, the first in the low bits.
int four_bits(const uint8_t* packed, int e) { return (packed[e / 64 * 32 + e % 32] >> (e % 64 / 32 * 4)) & 15; }

/// Bit of element e in 32 bytes, where bit g of byte l belongs to element l of group g.
int group_bit(const uint8_t* packed, int e) { return (packed[e % 32] >> (e / 32)) & 1; }

/// Q3_K's scale of 16-element group g: four low bits from the first eight bytes, two high ones from the last four.
int q3_scale(const uint8_t* packed, int g) {
  const int low = (packed[g % 8] >> (g / 8 * 4)) & 15, high = (packed[8 + g % 4] >> (g / 4 * 2)) & 3;
  return (low | high << 4) - 32;
}

struct ScaleAndMin {
  int scale, min;
};

/// Q4_K's and Q5_K's six-bit pair of 32-element group g: groups 4 to 7 keep their top two bits above those of groups 0
/// to 3.
ScaleAndMin k_scale(const uint8_t* packed, int g) {
  if (g < 4) return {packed[g] & 63, packed[g + 4] & 63};
  return {(packed[g + 4] & 15) | packed[g - 4] >> 6 << 4, packed[g + 4] >> 4 | packed[g] >> 6 << 4};
}

}  // namespace

void q2_k(const uint8_t* block, double* out) {
  const double d = half_at(block + 80), dmin = half_at(block + 82);
  for (int e = 0; e < 256; e++) {
    const int scale = block[e / 16];
    out[e] = d * (scale & 15) * two_bits(block + 16, e) - dmin * (scale >> 4);
  }
}

void q3_k(const uint8_t* block, double* out) {
  const double d = half_at(block + 108);
  for (int e = 0; e < 256; e++) {
    // The high bit is stored inverted: clear means four less.
    const int q = two_bits(block + 32, e) - (group_bit(block, e) ? 0 : 4);
    out[e] = d * q3_scale(block + 96, e / 16) * q;
  }
}

void q4_k(const uint8_t* block, double* out) {
  const double d = half_at(block), dmin = half_at(block + 2);
  for (int e = 0; e < 256; e++) {
    const ScaleAndMin group = k_scale(block + 4, e / 32);
    out[e] = d * group.scale * four_bits(block + 16, e) - dmin * group.min;
  }
}

void q5_k(const uint8_t* block, double* out) {
  const double d = half_at(block), dmin = half_at(block + 2);
  for (int e = 0; e < 256; e++) {
    const ScaleAndMin group = k_scale(block + 4, e / 32);
    const int q = four_bits(block + 48, e) | group_bit(block + 16, e) << 4;
    out[e] = d * group.scale * q - dmin * group.min;
  }
}

void q6_k(const uint8_t* block, double* out) {
  const double d = half_at(block + 208);
  for (int e = 0; e < 256; e++) {
    // A half of 128 elements has 64 bytes of low bits: its first 64 elements in their low four, its last 64 in their
    // high four.
    const int low = (block[e / 128 * 64 + e % 64] >> (e % 128 / 64 * 4)) & 15;
    const int q = (low | two_bits(block + 128, e) << 4) - 32;
    out[e] = d * int8_t(block[192 + e / 16]) * q;
  }
}

void iq4_xs(const uint8_t* block, double* out) {
  const double d = half_at(block);
  const int high_scales = block[2] | block[3] << 8;
  for (int e = 0; e < 256; e++) {
    const int group = e / 32;
    const int scale = ((block[4 + group / 2] >> (group % 2 * 4)) & 15) | ((high_scales >> (2 * group)) & 3) << 4;
    const uint8_t packed = block[8 + group * 16 + e % 16];
    out[e] = d * (scale - 32) * kNonLinearLevels[e % 32 < 16 ? packed & 15 : packed >> 4];
  }
}

}  // namespace lane::decode
