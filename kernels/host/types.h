// The host chip: CUDA's words, vector types and half-precision types for a plain C++ compiler.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Kernels that are no templates may then stand in headers that several files of one program include.
#define __global__ inline
#define __device__
#define __host__
#define __constant__ static
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

// A block runs on one OS thread, so shared arrays are that thread's. With HOST_CHIP_ONE_WORKER they are plain statics,
// between which ASan puts red zones (it puts none around thread-local storage).
#ifdef HOST_CHIP_ONE_WORKER
#define __shared__ static
#else
#define __shared__ static thread_local
#endif

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// Kernels read bytes and floats through these, so they may alias anything; the alignment is CUDA's, and UBSan checks
// it.
#define HOST_CHIP_VECTOR(alignment) struct __attribute__((aligned(alignment), may_alias))
HOST_CHIP_VECTOR(8) int2 { int x, y; };
HOST_CHIP_VECTOR(16) int4 { int x, y, z, w; };
HOST_CHIP_VECTOR(8) uint2 { unsigned x, y; };
HOST_CHIP_VECTOR(16) uint4 { unsigned x, y, z, w; };
HOST_CHIP_VECTOR(8) float2 { float x, y; };
HOST_CHIP_VECTOR(16) float4 { float x, y, z, w; };
HOST_CHIP_VECTOR(16) double2 { double x, y; };
#undef HOST_CHIP_VECTOR

inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

inline int __float_as_int(float v) {
  int bits;
  memcpy(&bits, &v, 4);
  return bits;
}
inline unsigned __float_as_uint(float v) {
  unsigned bits;
  memcpy(&bits, &v, 4);
  return bits;
}
inline float __int_as_float(int bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}
inline float __uint_as_float(unsigned bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}
inline long long __double_as_longlong(double v) {
  long long bits;
  memcpy(&bits, &v, 8);
  return bits;
}
inline double __longlong_as_double(long long bits) {
  double v;
  memcpy(&v, &bits, 8);
  return v;
}

// Half-precision types as bits alone: kernels convert by name and compute in float.
struct __half {
  unsigned short bits;
};
struct __half2 {
  __half x, y;
};
struct __nv_bfloat16 {
  unsigned short bits;
};

inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }

inline float __half2float(__half h) {
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  const unsigned sign = (h.bits & 0x8000u) << 16, magnitude = (h.bits & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return __uint_as_float((magnitude + 0x70000000u) | sign);  // infinity, NaN
  // The exponent's bias is off by 127 - 15; multiplying corrects subnormals as well.
  return __uint_as_float(__float_as_uint(__uint_as_float(magnitude) * 0x1p112f) | sign);
#endif
}

/// Round to nearest, ties to even; beyond 65,520 infinity.
inline __half __float2half(float v) {
  const unsigned bits = __float_as_uint(v), sign = bits >> 16 & 0x8000u;
  unsigned magnitude = bits & 0x7fffffffu;
  unsigned half;
  if (magnitude > 0x7f800000u) {
    return {0x7fff};  // CUDA's NaN
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // A subnormal half: adding 0.5 leaves its multiple of 2^-24 in the low bits, rounded by the addition.
    half = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return {static_cast<unsigned short>(half | sign)};
}
inline __half __float2half_rn(float v) { return __float2half(v); }
inline float2 __half22float2(__half2 h) { return {__half2float(h.x), __half2float(h.y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__float2half(v.x), __float2half(v.y)}; }

inline float __bfloat162float(__nv_bfloat16 h) { return __uint_as_float(unsigned(h.bits) << 16); }
/// Round to nearest, ties to even.
inline __nv_bfloat16 __float2bfloat16(float v) {
  const unsigned bits = __float_as_uint(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16_rn(float v) { return __float2bfloat16(v); }
