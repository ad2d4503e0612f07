// Q8_0 repacked: 34 bytes a block, as in the file.
//   [16 B first half] x blocks   [16 B second half] x blocks   [f16 d] x blocks
#pragma once
#include "layout/blocks.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ8_0 : RepackedBlocksOfHalves<RepackedQ8_0, 0> {
  static constexpr int kStoredElements = 32, kStoredBytes = 34, kBytes256 = 272, kCodeBytes = 32;
  static constexpr int kPlanes[] = {128, 128, 16};

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    copy_16(row + 16 * block, p + 2);
    copy_16(row + 16 * blocks + 16 * block, p + 18);
    store_as(row + kCodeBytes * blocks + 2 * block, load_short(p));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    const uint4 a = load_as<uint4>(row + 16 * block), b = load_as<uint4>(row + 16 * blocks + 16 * block);
    w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w, w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
  }
  static constexpr bool kWordShares = true;
  static __device__ __forceinline__ uint2 share(const uint8_t* row, int blocks, int block, int c) {
    const uint8_t* first = row + 16 * block + 4 * c;
    return make_uint2(load_as<uint32_t>(first), load_as<uint32_t>(first + 16 * blocks));
  }
};

}  // namespace LANE_NAMESPACE
