// Q4_1 repacked: 20 bytes a block, as in the file.
//   [16 B nibbles] x blocks   [f16 d, f16 m] x blocks
#pragma once
#include "layout/blocks.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ4_1 : RepackedBlocksOfPairs<RepackedQ4_1> {
  static constexpr int kStoredElements = 32, kStoredBytes = 20, kBytes256 = 160, kCodeBytes = 16;
  static constexpr int kPlanes[] = {128, 32};

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    copy_16(row + 16 * block, p + 4);
    store_as(row + kCodeBytes * blocks + 4 * block, load_word<1>(p));
  }
  static __device__ __forceinline__ void words(const uint8_t* row, int, int block, uint32_t (&w)[8]) {
    unpack_nibbles(load_as<uint4>(row + 16 * block), w);
  }
};

}  // namespace LANE_NAMESPACE
