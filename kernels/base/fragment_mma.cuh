// Products of fragments in registers and tiles in shared memory by four warps: on the tensor cores of architecture
// sm_90a, elsewhere portably. They are begun, ended and awaited as base/warpgroup_mma.cuh says, and their sums lie
// likewise.
//
// note [fragments]
// The left matrix, 64 x 16 halves, is in registers: lane l of warp w has of rows 16 w + l / 4 and 8 below columns 2
// c and 2 c + 1 (c = l % 4) in x and y, and columns 2 c + 8 and 2 c + 9 in z and w. From begin to the wait nobody
// writes them.
//
// Or the left matrix is 64 x 32 floats of eight bits, E5M2 (base/fp8.cuh): of the same rows columns 4 c to 4 c + 3 in x
// and y, and columns 16 + 4 c to 16 + 4 c + 3 in z and w.
//
// note [core tiles]
// A core tile is rows of 16 halves; eight rows' first eight halves lie together, 16 bytes a row, and then their last
// eight.
//
// note [byte tiles]
// A byte tile is rows of 64 floats of eight bits, E4M3. Eight rows' first 32 lie together, 32 bytes a row, and then
// their last. Of rows 4 to 7 of eight the two halves of 16 bytes change places: so eight rows' equal halves fall on
// different banks.
#pragma once
#include "base/fp8.cuh"
#include "base/warpgroup_mma.cuh"

namespace LANE_NAMESPACE {

/// Where half `at` of row `row` lies in a core tile.
__device__ __forceinline__ int core_tile_place(int row, int at) {
  return row / 8 * 256 + at / 8 * 128 + row % 8 * 16 + at % 8 * 2;
}

constexpr int kByteTileRowBytes = 64;
/// Where column `column` of row `row` lies in a byte tile.
__device__ __forceinline__ int byte_tile_place(int row, int column) {
  const int half = (column / 16 % 2) ^ (row / 4 % 2);
  return row / 8 * (8 * kByteTileRowBytes) + column / 32 * 256 + row % 8 * 32 + half * 16 + column % 16;
}

/// A tile in shared memory: where something lies that does not change from tile to tile, and bytes behind it. Apart, so
/// that what tensor cores are told of a tile is one addition.
struct TileAt {
  uint8_t* base;
  int offset;
  __device__ __forceinline__ uint8_t* pointer() const { return base + offset; }
  __device__ __forceinline__ TileAt behind(int bytes) const { return {base, offset + bytes}; }
};

#if defined(LANE_WARPGROUP_MMA)
/// What tensor cores are told of a tile whose parts lie `near` and `far` bytes apart, swizzled over 128 bytes (1), 32
/// (3) or not.
__device__ __forceinline__ uint64_t descriptor(const TileAt& tile, int near, int far, uint32_t swizzle) {
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(tile.base)) >> 4;
  const uint32_t low = base + static_cast<uint32_t>(tile.offset / 16 + (near / 16 << 16));
  return static_cast<uint64_t>(static_cast<uint32_t>(far / 16) | swizzle << 30) << 32 | low;
}
/// Columns [16 k, 16 k + 16) of a swizzled tile.
__device__ __forceinline__ uint64_t half_columns(const TileAt& tile, int k) {
  return descriptor(tile.behind(32 * k), 16, 8 * kTileRowBytes, 1);
}
/// Columns [32 k, 32 k + 32) of a byte tile.
__device__ __forceinline__ uint64_t byte_columns(const TileAt& tile, int k) {
  return descriptor(tile.behind(256 * k), 16, 8 * kByteTileRowBytes, 3);
}
__device__ __forceinline__ uint64_t core_tile(const TileAt& tile) { return descriptor(tile, 128, 256, 0); }

#define LANE_HALVES "k16.f32.f16.f16"
#define LANE_HALVES_END "p, 1, 1, 0;\n}"
#define LANE_BYTES "k32.f32.e5m2.e4m3"
#define LANE_BYTES_END "p, 1, 1;\n}"
#define LANE_FRAGMENTS(bt) "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(bt), "r"(static_cast<int>(accumulates))
#define LANE_FRAGMENT_PRODUCT_32(KIND, bt)                                                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\nwgmma.mma_async.sync.aligned.m64n32" KIND              \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, " \
               "%20, " KIND##_END                                                                                \
               : LANE_SUMS_8(0), LANE_SUMS_8(8)                                                                  \
               : LANE_FRAGMENTS(bt))
#define LANE_FRAGMENT_PRODUCT_64(KIND, bt)                                                                       \
  asm volatile(                                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64" KIND                       \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "                  \
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, " KIND##_END \
      : LANE_SUMS_32(0)                                                                                          \
      : LANE_FRAGMENTS(bt))
#define LANE_FRAGMENT_PRODUCT_128(KIND, bt)                                                                 \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128" KIND        \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "    \
               "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, " \
               "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, " \
               "%55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, " KIND##_END       \
               : LANE_SUMS_32(0), LANE_SUMS_32(32)                                                          \
               : LANE_FRAGMENTS(bt))
#else
struct HalfFragment {
  static constexpr int kColumns = 16, kOfWord = 2;
  static __device__ __forceinline__ float value(uint32_t word, int i) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(word >> 16 * i)));
  }
};
struct ByteFragment {
  static constexpr int kColumns = 32, kOfWord = 4;
  static __device__ __forceinline__ float value(uint32_t word, int i) {
    return float_of_e5m2(static_cast<uint8_t>(word >> 8 * i));
  }
};
/// Portably, out of line since shuffles are slow to compile; `read(row, values)` gives a row of b.
template <class Fragment, int Rows, class Read>
__device__ __attribute__((noinline)) void portable_fragment_product(float (&c)[Rows / 2], const uint4& a,
                                                                    bool accumulates, Read read) {
  constexpr int kColumns = Fragment::kColumns, kOfWord = Fragment::kOfWord;
  const int lane = static_cast<int>(threadIdx.x & 31u), quad = lane - lane % 4;
  float left[2][kColumns], right[kColumns];
  for (int from = 0; from < 4; from++) {
    const uint32_t words[4] = {
        __shfl_sync(LANE_FULL_WARP, a.x, quad + from), __shfl_sync(LANE_FULL_WARP, a.y, quad + from),
        __shfl_sync(LANE_FULL_WARP, a.z, quad + from), __shfl_sync(LANE_FULL_WARP, a.w, quad + from)};
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < kOfWord; j++)
        left[i % 2][i / 2 * (kColumns / 2) + kOfWord * from + j] = Fragment::value(words[i], j);
  }
  for (int n = 0; n < Rows / 4; n++) {
    read(n / 2 * 8 + lane % 4 * 2 + n % 2, right);
    for (int i = 0; i < 2; i++) {
      float& sum = c[n / 2 * 4 + 2 * i + n % 2];
      if (!accumulates) sum = 0;
      for (int j = 0; j < kColumns; j++) sum += left[i][j] * right[j];
    }
  }
}
#endif

/// c += a b^T, or c = a b^T unless it `accumulates`: a of fragments of halves, b columns [16 k, 16 k + 16) of a
/// swizzled tile of Rows rows of halves, 32, 64 or 128.
template <int Rows>
__device__ __forceinline__ void add_fragment_product(float (&c)[Rows / 2], const uint4& a, const TileAt& b, int k,
                                                     bool accumulates) {
#if defined(LANE_WARPGROUP_MMA)
  if constexpr (Rows == 32) LANE_FRAGMENT_PRODUCT_32(LANE_HALVES, half_columns(b, k));
  if constexpr (Rows == 64) LANE_FRAGMENT_PRODUCT_64(LANE_HALVES, half_columns(b, k));
  if constexpr (Rows == 128) LANE_FRAGMENT_PRODUCT_128(LANE_HALVES, half_columns(b, k));
#else
  portable_fragment_product<HalfFragment, Rows>(
      c, a, accumulates, [=](int row, float(&values)[16]) { read_swizzled<HalfWords>(b.pointer(), row, k, values); });
#endif
}
/// Likewise of fragments of bytes and columns [32 k, 32 k + 32) of a byte tile. On tensor cores the sums keep 14 bits,
/// those that were there, too.
template <int Rows>
__device__ __forceinline__ void add_byte_fragment_product(float (&c)[Rows / 2], const uint4& a, const TileAt& b, int k,
                                                          bool accumulates) {
#if defined(LANE_WARPGROUP_MMA)
  if constexpr (Rows == 32) LANE_FRAGMENT_PRODUCT_32(LANE_BYTES, byte_columns(b, k));
  if constexpr (Rows == 64) LANE_FRAGMENT_PRODUCT_64(LANE_BYTES, byte_columns(b, k));
  if constexpr (Rows == 128) LANE_FRAGMENT_PRODUCT_128(LANE_BYTES, byte_columns(b, k));
#else
  portable_fragment_product<ByteFragment, Rows>(c, a, accumulates, [=](int row, float(&values)[32]) {
    for (int i = 0; i < 32; i++) values[i] = float_of_e4m3(b.pointer()[byte_tile_place(row, 32 * k + i)]);
  });
#endif
}
/// Likewise of fragments of halves and a core tile.
template <int Rows>
__device__ __forceinline__ void add_core_tile_product(float (&c)[Rows / 2], const uint4& a, const TileAt& b,
                                                      bool accumulates) {
#if defined(LANE_WARPGROUP_MMA)
  if constexpr (Rows == 32) LANE_FRAGMENT_PRODUCT_32(LANE_HALVES, core_tile(b));
  if constexpr (Rows == 64) LANE_FRAGMENT_PRODUCT_64(LANE_HALVES, core_tile(b));
  if constexpr (Rows == 128) LANE_FRAGMENT_PRODUCT_128(LANE_HALVES, core_tile(b));
#else
  portable_fragment_product<HalfFragment, Rows>(c, a, accumulates, [=](int row, float(&values)[16]) {
    for (int i = 0; i < 16; i += 2) {
      uint32_t pair;
      memcpy(&pair, b.pointer() + core_tile_place(row, i), 4);
      const float2 v = pair_of_halves(pair);
      values[i] = v.x, values[i + 1] = v.y;
    }
  });
#endif
}

}  // namespace LANE_NAMESPACE
