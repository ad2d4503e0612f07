// Products of matrices in shared memory by four warps: on the tensor cores of architecture sm_90a, elsewhere portably.
// Tiles lie as base/swizzled.cuh says, at multiples of 1,024 bytes.
//
// note [fragments]
// Or the left matrix, 64 x 16 halves, is in registers: lane l of warp w has of rows 16 w + l / 4 and 8 below columns 2
// c and 2 c + 1 (c = l % 4) in x and y, and columns 2 c + 8 and 2 c + 9 in z and w. From begin to the wait nobody
// writes them.
//
// note [core tiles]
// A core tile is rows of 16 halves; eight rows' first eight halves lie together, 16 bytes a row, and then their last
// eight.
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

/// Where half `at` of row `row` lies in a core tile.
__device__ __forceinline__ int core_tile_place(int row, int at) {
  return row / 8 * 256 + at / 8 * 128 + row % 8 * 16 + at % 8 * 2;
}

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
/// A core tile: its halves apart by 128 bytes, eight rows by 256.
__device__ __forceinline__ uint64_t core_tile_descriptor(const uint8_t* tile) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32;
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

#if defined(LANE_WARPGROUP_MMA)
#define LANE_FRAGMENT_PRODUCT_32(bt)                                                                                  \
  asm volatile(                                                                                                       \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\nwgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"                  \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, %20, p, 1, 1, " \
      "0;\n}"                                                                                                         \
      : LANE_SUMS_8(0), LANE_SUMS_8(8)                                                                                \
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(bt), "r"(static_cast<int>(accumulates)))
#define LANE_FRAGMENT_PRODUCT_64(bt)                                                                                \
  asm volatile(                                                                                                     \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"                \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "                     \
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}" \
      : LANE_SUMS_32(0)                                                                                             \
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(bt), "r"(static_cast<int>(accumulates)))
#define LANE_FRAGMENT_PRODUCT_128(bt)                                                                 \
  asm volatile(                                                                                       \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16" \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "       \
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, "    \
      "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, "    \
      "%55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}"       \
      : LANE_SUMS_32(0), LANE_SUMS_32(32)                                                             \
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(bt), "r"(static_cast<int>(accumulates)))
#else
/// Portably, out of line since shuffles are slow to compile; `read(row, values)` gives 16 values of b's row.
template <int Rows, class Read>
__device__ __attribute__((noinline)) void portable_fragment_product(float (&c)[Rows / 2], const uint4& a,
                                                                    bool accumulates, Read read) {
  const int lane = static_cast<int>(threadIdx.x & 31u), quad = lane - lane % 4;
  float left[2][16], right[16];
  for (int from = 0; from < 4; from++) {
    const uint32_t words[4] = {
        __shfl_sync(LANE_FULL_WARP, a.x, quad + from), __shfl_sync(LANE_FULL_WARP, a.y, quad + from),
        __shfl_sync(LANE_FULL_WARP, a.z, quad + from), __shfl_sync(LANE_FULL_WARP, a.w, quad + from)};
    for (int i = 0; i < 4; i++) {
      const float2 pair = pair_of_halves(words[i]);
      left[i % 2][i / 2 * 8 + 2 * from] = pair.x, left[i % 2][i / 2 * 8 + 2 * from + 1] = pair.y;
    }
  }
  for (int n = 0; n < Rows / 4; n++) {
    read(n / 2 * 8 + lane % 4 * 2 + n % 2, right);
    for (int i = 0; i < 2; i++) {
      float& sum = c[n / 2 * 4 + 2 * i + n % 2];
      if (!accumulates) sum = 0;
      for (int j = 0; j < 16; j++) sum += left[i][j] * right[j];
    }
  }
}
#endif

/// c += a b^T, or c = a b^T unless it `accumulates`: a of fragments of halves, b columns [16 k, 16 k + 16) of a tile of
/// Rows rows of halves, 32, 64 or 128; the sums as in add_tile_product.
template <int Rows>
__device__ __forceinline__ void add_fragment_product(float (&c)[Rows / 2], const uint4& a, const uint8_t* b, int k,
                                                     bool accumulates) {
#if defined(LANE_WARPGROUP_MMA)
  if constexpr (Rows == 32) LANE_FRAGMENT_PRODUCT_32(tile_descriptor(b) + 2 * k);
  if constexpr (Rows == 64) LANE_FRAGMENT_PRODUCT_64(tile_descriptor(b) + 2 * k);
  if constexpr (Rows == 128) LANE_FRAGMENT_PRODUCT_128(tile_descriptor(b) + 2 * k);
#else
  portable_fragment_product<Rows>(c, a, accumulates,
                                  [=](int row, float(&values)[16]) { read_swizzled<HalfWords>(b, row, k, values); });
#endif
}
/// c = a b^T of fragments and a core tile.
template <int Rows>
__device__ __forceinline__ void multiply_core_tile(float (&c)[Rows / 2], const uint4& a, const uint8_t* b) {
#if defined(LANE_WARPGROUP_MMA)
  constexpr bool accumulates = false;
  if constexpr (Rows == 32) LANE_FRAGMENT_PRODUCT_32(core_tile_descriptor(b));
  if constexpr (Rows == 64) LANE_FRAGMENT_PRODUCT_64(core_tile_descriptor(b));
  if constexpr (Rows == 128) LANE_FRAGMENT_PRODUCT_128(core_tile_descriptor(b));
#else
  portable_fragment_product<Rows>(c, a, false, [=](int row, float(&values)[16]) {
    for (int i = 0; i < 16; i += 2) {
      uint32_t pair;
      memcpy(&pair, b + core_tile_place(row, i), 4);
      const float2 v = pair_of_halves(pair);
      values[i] = v.x, values[i + 1] = v.y;
    }
  });
#endif
}

}  // namespace LANE_NAMESPACE
