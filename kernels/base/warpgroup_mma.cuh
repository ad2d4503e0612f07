// Products of matrices in shared memory by four warps: on the tensor cores of architecture sm_90a, elsewhere portably.
// Tiles lie as base/swizzled.cuh says, at multiples of 1,024 bytes.
#pragma once
#include "base/async_copy.cuh"
#include "base/swizzled.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LANE_WARPGROUP_MMA
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
#warning "built for sm_90, long prompts are slow; say -gencode arch=compute_90a,code=sm_90a to nvcc"
#endif

namespace LANE_NAMESPACE {

__device__ __forceinline__ float2 pair_of_halves(uint32_t bits) {
  return make_float2(__half2float(__ushort_as_half(static_cast<uint16_t>(bits))),
                     __half2float(__ushort_as_half(static_cast<uint16_t>(bits >> 16))));
}
struct HalfWords {
  static __device__ __forceinline__ float2 pair(uint32_t bits) { return pair_of_halves(bits); }
};

/// As wait_copy_groups, and lets tensor cores see what has come.
template <int Pending>
__device__ __forceinline__ void wait_tile_copies() {
  wait_copy_groups<Pending>();
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#if defined(LANE_WARPGROUP_MMA)
/// A tile for the tensor cores: its address, eight rows apart by 1,024 bytes, swizzled over 128.
__device__ __forceinline__ uint64_t tile_descriptor(const uint8_t* tile) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | uint64_t{1} << 16 | uint64_t{64} << 32 | uint64_t{1} << 62;
}
#endif

/// Between begin and end, the sums belong to the tensor cores; end does not wait.
__device__ __forceinline__ void begin_tile_products() {
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void end_tile_products() {
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits until at most `Left` of the ends before have products under way; after 0 the sums can be read.
template <int Left, int Count>
__device__ __forceinline__ void await_tile_products(float (&sums)[Count]) {
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
  LANE_UNROLL
  for (int i = 0; Left == 0 && i < Count; i++) asm volatile("" : "+f"(sums[i])::"memory");
#else
  (void)sums;
#endif
}

/// Likewise, and these sums, whose products all were before the last `Left` ends, can be read.
template <int Left, int Count>
__device__ __forceinline__ void await_earlier_products(float (&sums)[Count]) {
#if defined(LANE_WARPGROUP_MMA)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
  LANE_UNROLL
  for (int i = 0; i < Count; i++) asm volatile("" : "+f"(sums[i])::"memory");
#else
  (void)sums;
#endif
}

#if defined(LANE_WARPGROUP_MMA)
#define LANE_SUMS_8(i)                                                                                        \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), \
      "+f"(c[i + 7])
#define LANE_SUMS_32(i) LANE_SUMS_8(i), LANE_SUMS_8(i + 8), LANE_SUMS_8(i + 16), LANE_SUMS_8(i + 24)
#define LANE_TILE_PRODUCT_64(TYPES)                                                                          \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPES                                           \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "     \
               "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0; " \
               : LANE_SUMS_32(0)                                                                             \
               : "l"(at), "l"(bt))
#define LANE_TILE_PRODUCT_128(TYPES)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPES                                         \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "    \
               "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, " \
               "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, " \
               "%55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0; "                    \
               : LANE_SUMS_32(0), LANE_SUMS_32(32)                                                          \
               : "l"(at), "l"(bt))
#endif

/// c += a b^T: columns [16 k, 16 k + 16) of a tile of 64 rows and of one of Rows, 64 or 128, of Words: HalfWeight or
/// BfloatWeight; sums in float. Four warps together, the first a multiple of four. Lane l of warp w has c[4 n + i] of
/// row 16 w + l / 4 + 8 (i / 2) of a and of row 8 n + 2 (l % 4) + i % 2 of b. On tensor cores an addition drops what is
/// below the sum's last bit.
template <class Words, int Rows>
__device__ __forceinline__ void add_tile_product(float (&c)[Rows / 2], const uint8_t* a, const uint8_t* b, int k) {
#if defined(LANE_WARPGROUP_MMA)
  const uint64_t at = tile_descriptor(a) + 2 * k, bt = tile_descriptor(b) + 2 * k;
  if constexpr (Rows == 64 && Words::kBfloat) LANE_TILE_PRODUCT_64("bf16.bf16");
  if constexpr (Rows == 64 && !Words::kBfloat) LANE_TILE_PRODUCT_64("f16.f16");
  if constexpr (Rows == 128 && Words::kBfloat) LANE_TILE_PRODUCT_128("bf16.bf16");
  if constexpr (Rows == 128 && !Words::kBfloat) LANE_TILE_PRODUCT_128("f16.f16");
#else
  const int lane = static_cast<int>(threadIdx.x & 31u), warp = static_cast<int>(threadIdx.x >> 5) % 4;
  float left[2][16], right[16];
  for (int i = 0; i < 2; i++) read_swizzled<Words>(a, 16 * warp + lane / 4 + 8 * i, k, left[i]);
  for (int n = 0; n < Rows / 4; n++) {
    read_swizzled<Words>(b, n / 2 * 8 + lane % 4 * 2 + n % 2, k, right);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 16; j++) c[n / 2 * 4 + 2 * i + n % 2] += left[i][j] * right[j];
  }
#endif
}

}  // namespace LANE_NAMESPACE
