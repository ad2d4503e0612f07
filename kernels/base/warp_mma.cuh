// Products of swizzled tiles in shared memory by one warp: on the tensor cores of sm_80 and up, elsewhere portably.
#pragma once
#include "base/swizzled.cuh"

namespace LANE_NAMESPACE {

/// 16 rows and 16 columns of a tile. On a GPU the lane's share of them in registers: lane 4 g + c holds columns 2c and
/// 2c + 1 of row g, of row g + 8, and the same eight columns on. On the host, where they lie.
struct TileFragment {
#if defined(__CUDACC__)
  uint32_t word[4];
#else
  const uint8_t* rows;
  int k;
#endif
};

/// Rows [row, row + 16) and columns [16 k, 16 k + 16) of a swizzled tile; row % 8 == 0.
__device__ __forceinline__ TileFragment load_fragment(const uint8_t* tile, int row, int k) {
#if defined(__CUDACC__)
  const int lane = static_cast<int>(threadIdx.x & 31u);
  const uint8_t* own = tile + swizzled(row + (lane & 15), 2 * k + (lane >> 4));
  TileFragment f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.word[0]), "=r"(f.word[1]), "=r"(f.word[2]), "=r"(f.word[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(own)))
               : "memory");
  return f;
#else
  return {tile + row * kTileRowBytes, k};
#endif
}

/// c += a b^T, 16 x 16: lane 4 g + l holds c[h][i] of a's row g + 8 (i / 2) and b's row 8 h + 2 l + i % 2. Words:
/// HalfWeight or BfloatWeight; sums in float, of which tensor cores drop what is below the last bit.
template <class Words>
__device__ __forceinline__ void multiply_fragments(float (&c)[2][4], const TileFragment& a, const TileFragment& b) {
#if defined(__CUDACC__)
#define LANE_FRAGMENT_PRODUCT(TYPES)                                 \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPES                 \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, " \
      "%2, %3};"                                                     \
      : "+f"(c[h][0]), "+f"(c[h][1]), "+f"(c[h][2]), "+f"(c[h][3])   \
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[h]), "r"(b.word[h + 2]))
  LANE_UNROLL
  for (int h = 0; h < 2; h++) {
    if constexpr (Words::kBfloat) LANE_FRAGMENT_PRODUCT("bf16.bf16");
    if constexpr (!Words::kBfloat) LANE_FRAGMENT_PRODUCT("f16.f16");
  }
#undef LANE_FRAGMENT_PRODUCT
#else
  const int lane = static_cast<int>(threadIdx.x & 31u);
  float left[2][16], right[16];
  for (int i = 0; i < 2; i++) read_swizzled<Words>(a.rows, lane / 4 + 8 * i, a.k, left[i]);
  for (int n = 0; n < 4; n++) {
    read_swizzled<Words>(b.rows, n / 2 * 8 + lane % 4 * 2 + n % 2, b.k, right);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 16; j++) c[n / 2][2 * i + n % 2] += left[i][j] * right[j];
  }
#endif
}

}  // namespace LANE_NAMESPACE
