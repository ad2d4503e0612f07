// Floats of eight bits. E4M3: four bits of exponent (bias 7), three of mantissa, up to 448, steps of 2^-9 below 2^-6,
// no infinity. E5M2: the upper byte of a half.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// Two floats of magnitude 448 at most as E4M3, rounded to the nearest and to even, `low` in the low byte.
__device__ __forceinline__ uint16_t pair_of_e4m3(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto byte = [](float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    const uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7FFFFFFF;
    // Below 2^-6 the code is the count of steps, 8 for 2^-6 itself; from there on exponent and mantissa lie as in
    // float.
    if (magnitude < 0x3C800000) return sign | static_cast<uint32_t>(rintf(ldexpf(fabsf(v), 9)));
    return sign | (((magnitude + 0x7FFFF + (magnitude >> 20 & 1)) >> 20) - (120 << 3));
  };
  return static_cast<uint16_t>(byte(low) | byte(high) << 8);
#endif
}
__device__ __forceinline__ float float_of_e4m3(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const auto mantissa = static_cast<float>(exponent ? 8 + (code & 7) : code & 7);
  const float magnitude = ldexpf(mantissa, (exponent ? exponent : 1) - 10);
  return code & 0x80 ? -magnitude : magnitude;
}
__device__ __forceinline__ float float_of_e5m2(uint8_t code) {
  return __half2float(__ushort_as_half(static_cast<uint16_t>(code << 8)));
}

}  // namespace LANE_NAMESPACE
