// Products of small matrices by a whole warp, on tensor cores (of bytes from capability 7.5 on, of halves from 8.0 on)
// or by shuffles.
//
// note [fragments of mma]
// Lane 4 g + c holds, of a 16 x 16 A: rows g and g + 8, columns 2c, 2c + 1, 2c + 8 and 2c + 9; of a 16 x 8 B: the same
// rows of column g; of a 16 x 8 C: rows g and g + 8, columns 2c and 2c + 1.
//
// note [no branch at a product]
// All 32 lanes take part in a product. A condition that differs between lanes and decides what a lane multiplies may
// become a branch with a copy of the product on either side, where the warp waits for itself for ever: seen with nvcc
// 13.0. So every lane loads something finite, and a zero in the other factor, or a sum that nobody reads, makes it
// harmless.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// c += a b: halves, two a word, the lower address in the low bits; sums in float. a: (g, 2c), (g + 8, 2c), (g, 2c +
/// 8), (g + 8, 2c + 8); b: rows 2c, 2c + 8; c: (g, 2c), (g, 2c + 1), (g + 8, 2c), (g + 8, 2c + 1).
__device__ __forceinline__ void mma_half(float (&c)[4], const uint4& a, uint32_t b0, uint32_t b1) {
#if defined(__CUDACC__)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
  auto half = [](uint32_t word, int i) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(word >> 16 * i)));
  };
  const int lane = static_cast<int>(threadIdx.x & 31u), row = lane / 4 * 4, column = lane % 4 * 2 * 4;
  for (int k = 0; k < 4; k++) {
    const uint32_t upper[2] = {__shfl_sync(LANE_FULL_WARP, a.x, row + k), __shfl_sync(LANE_FULL_WARP, a.z, row + k)};
    const uint32_t lower[2] = {__shfl_sync(LANE_FULL_WARP, a.y, row + k), __shfl_sync(LANE_FULL_WARP, a.w, row + k)};
    const uint32_t left[2] = {__shfl_sync(LANE_FULL_WARP, b0, column + k), __shfl_sync(LANE_FULL_WARP, b1, column + k)};
    const uint32_t right[2] = {__shfl_sync(LANE_FULL_WARP, b0, column + 4 + k),
                               __shfl_sync(LANE_FULL_WARP, b1, column + 4 + k)};
    for (int i = 0; i < 4; i++) {
      c[0] += half(upper[i / 2], i % 2) * half(left[i / 2], i % 2),
          c[1] += half(upper[i / 2], i % 2) * half(right[i / 2], i % 2);
      c[2] += half(lower[i / 2], i % 2) * half(left[i / 2], i % 2),
          c[3] += half(lower[i / 2], i % 2) * half(right[i / 2], i % 2);
    }
  }
#endif
}

// Turing's tensor cores take eight rows of A and 16 columns of bytes at a time.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define LANE_EIGHT_ROW_MMA
/// Half of the first mma_int8 below: rows g, or rows g + 8.
__device__ __forceinline__ void mma_int8_rows(int& c0, int& c1, uint32_t a, uint32_t b) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(c0), "+r"(c1)
      : "r"(a), "r"(b));
}
#endif
#if !defined(__CUDACC__)
/// Out of line: sixteen shuffles at every product would be slow to compile.
__attribute__((noinline)) inline void portable_mma_int8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  const int lane = static_cast<int>(threadIdx.x & 31u), row = lane / 4 * 4, column = lane % 4 * 2 * 4;
  for (int k = 0; k < 4; k++) {
    const int upper = static_cast<int>(__shfl_sync(LANE_FULL_WARP, a0, row + k));
    const int lower = static_cast<int>(__shfl_sync(LANE_FULL_WARP, a1, row + k));
    const int left = static_cast<int>(__shfl_sync(LANE_FULL_WARP, b, column + k));
    const int right = static_cast<int>(__shfl_sync(LANE_FULL_WARP, b, column + 4 + k));
    c[0] = __dp4a(upper, left, c[0]), c[1] = __dp4a(upper, right, c[1]);
    c[2] = __dp4a(lower, left, c[2]), c[3] = __dp4a(lower, right, c[3]);
  }
}
#endif

/// c += a b: signed bytes, four a word, sums in exact integers; a is 16 x 16, b 16 x 8. a: (g, 4c), (g + 8, 4c), four
/// columns each; b: rows 4c, four; c as in mma_half.
__device__ __forceinline__ void mma_int8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
#if defined(LANE_EIGHT_ROW_MMA)
  mma_int8_rows(c[0], c[1], a0, b);
  mma_int8_rows(c[2], c[3], a1, b);
#elif defined(__CUDACC__)
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
#else
  portable_mma_int8(c, a0, a1, b);
#endif
}
/// The same with twice the columns, 16 x 32 and 32 x 8. a: (g, 4c), (g + 8, 4c), (g, 4c + 16), (g + 8, 4c + 16); b:
/// rows 4c, 4c + 16.
__device__ __forceinline__ void mma_int8(int (&c)[4], const uint4& a, uint32_t b0, uint32_t b1) {
#if defined(__CUDACC__) && !defined(LANE_EIGHT_ROW_MMA)
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
  mma_int8(c, a.x, a.y, b0);
  mma_int8(c, a.z, a.w, b1);
#endif
}

/// A 16 x 32 matrix of bytes as mma_int8 takes it. `tile`: columns 0 to 15 of the sixteen rows, then columns 16 to 31
/// of them; in shared memory, 16-byte aligned.
__device__ __forceinline__ uint4 load_fragment(const uint8_t* tile) {
  const unsigned lane = threadIdx.x & 31u;
#if defined(__CUDACC__)
  uint4 a;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w)
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(tile + 16 * lane)))
               : "memory");
  return a;
#else
  const uint32_t* words = reinterpret_cast<const uint32_t*>(tile) + lane;
  return make_uint4(words[0], words[32], words[64], words[96]);
#endif
}

/// Two floats rounded to halves in one word, `low` in the low bits; and what the rounding left, rounded likewise.
/// Together they keep 22 bits, down to steps of 2^-24.
struct HalfPair {
  uint32_t high, rest;
};
__device__ __forceinline__ HalfPair split_to_halves(float low, float high) {
  const __half l = __float2half(low), h = __float2half(high);
  const __half l_rest = __float2half(low - __half2float(l)), h_rest = __float2half(high - __half2float(h));
  auto word = [](__half a, __half b) { return static_cast<uint32_t>(__half_as_ushort(b)) << 16 | __half_as_ushort(a); };
  return {word(l, h), word(l_rest, h_rest)};
}

/// 2^x, to about two units in the last place; 0 where that is below 2^-126.
__device__ __forceinline__ float fast_exp2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

}  // namespace LANE_NAMESPACE
