// The host chip: CUDA's device functions that are no collectives: atomics, bit tricks, mathematics.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "host/types.h"

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }

template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T v) {
  *p = v;
}

/// c plus the four products of the signed bytes.
inline int __dp4a(int a, int b, int c) {
  int8_t x[4], y[4];
  memcpy(x, &a, 4);
  memcpy(y, &b, 4);
  return static_cast<int>(static_cast<unsigned>(c) +
                          static_cast<unsigned>(x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3]));
}
inline float __fdividef(float a, float b) { return a / b; }
/// Byte i of the result is byte (selector >> 4i & 7) of the eight bytes b:a.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned nibble = selector >> (4 * i);
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7u))) & 0xffu;
    if (nibble & 8u) byte = byte & 0x80u ? 0xffu : 0u;  // the sign, replicated
    result |= byte << (8 * i);
  }
  return result;
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __ffs(int v) { return __builtin_ffs(v); }

inline int __float2int_rn(float v) { return static_cast<int>(lrintf(v)); }
inline int __float2int_rz(float v) { return static_cast<int>(v); }
inline int __double2int_rn(double v) { return static_cast<int>(lrint(v)); }

inline float rsqrtf(float v) { return 1.0f / sqrtf(v); }
inline double rsqrt(double v) { return 1.0 / sqrt(v); }
inline float __expf(float v) { return expf(v); }
inline float __logf(float v) { return logf(v); }
inline float __frcp_rn(float v) { return 1.0f / v; }
// Without contraction: the host build says -ffp-contract=off.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }

namespace host_chip {
/// *p = next(*p), atomically; returns the old value.
template <class T, class Next>
inline T update(T* p, Next next) {
  T old, desired;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do desired = next(old);
  while (!__atomic_compare_exchange(p, &old, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
}  // namespace host_chip

template <class T>
inline T atomicAdd(T* p, T v) {
  return host_chip::update(p, [v](T old) { return static_cast<T>(old + v); });
}
template <class T>
inline T atomicMax(T* p, T v) {
  return host_chip::update(p, [v](T old) { return old < v ? v : old; });
}
template <class T>
inline T atomicMin(T* p, T v) {
  return host_chip::update(p, [v](T old) { return v < old ? v : old; });
}
template <class T>
inline T atomicExch(T* p, T v) {
  return host_chip::update(p, [v](T) { return v; });
}
template <class T>
inline T atomicCAS(T* p, T expected, T desired) {
  __atomic_compare_exchange(p, &expected, &desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { std::abort(); }
