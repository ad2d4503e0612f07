// Blocks of 32. Where two elements share a byte, the low four bits are element j's and the high four element j + 16's.
#include <cmath>

#include "decode.h"

namespace lane::decode {
namespace {

int nibble(const uint8_t* packed, int j) { return j < 16 ? packed[j] & 15 : packed[j - 16] >> 4; }
int bit(const uint8_t* packed, int j) { return (packed[j / 8] >> (j % 8)) & 1; }

}  // namespace

const int8_t kNonLinearLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void q4_0(const uint8_t* block, double* out) {
  const double d = half_at(block);
  for (int j = 0; j < 32; j++) out[j] = d * (nibble(block + 2, j) - 8);
}

void q4_1(const uint8_t* block, double* out) {
  const double d = half_at(block), m = half_at(block + 2);
  for (int j = 0; j < 32; j++) out[j] = d * nibble(block + 4, j) + m;
}

void q5_0(const uint8_t* block, double* out) {
  const double d = half_at(block);
  for (int j = 0; j < 32; j++) out[j] = d * ((nibble(block + 6, j) | bit(block + 2, j) << 4) - 16);
}

void q5_1(const uint8_t* block, double* out) {
  const double d = half_at(block), m = half_at(block + 2);
  for (int j = 0; j < 32; j++) out[j] = d * (nibble(block + 8, j) | bit(block + 4, j) << 4) + m;
}

void q8_0(const uint8_t* block, double* out) {
  const double d = half_at(block);
  for (int j = 0; j < 32; j++) out[j] = d * int8_t(block[2 + j]);
}

void iq4_nl(const uint8_t* block, double* out) {
  const double d = half_at(block);
  for (int j = 0; j < 32; j++) out[j] = d * kNonLinearLevels[nibble(block + 2, j)];
}

void mxfp4(const uint8_t* block, double* out) {
  // Twice the e2m1 values, so that they are integers; the exponent's bias of 127 becomes 128.
  static constexpr int kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (int j = 0; j < 32; j++) out[j] = std::ldexp(kTwiceE2m1[nibble(block + 1, j)], block[0] - 128);
}

}  // namespace lane::decode
