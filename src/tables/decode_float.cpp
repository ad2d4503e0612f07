#include <bit>
#include <cmath>
#include <limits>

#include "decode.h"

namespace lane::decode {
namespace {

uint32_t little_endian(const uint8_t* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; i++) value |= uint32_t(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

double half_at(const uint8_t* bytes) {
  const uint32_t bits = little_endian(bytes, 2);
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  // A zero exponent is a subnormal: no implied leading one, the scale of exponent 1.
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

void f32(const uint8_t* block, double* out) { *out = std::bit_cast<float>(little_endian(block, 4)); }
void f16(const uint8_t* block, double* out) { *out = half_at(block); }
void bf16(const uint8_t* block, double* out) { *out = std::bit_cast<float>(little_endian(block, 2) << 16); }

}  // namespace lane::decode
