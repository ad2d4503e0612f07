// Q5_1 repacked: 24 bytes a block, as in the file.
//   [16 B] x blocks   [4 B] x blocks: codes of 5 bits, see pack_5   [f16 d, f16 m] x blocks
#pragma once
#include "layout/blocks.cuh"
#include "layout/q5_0.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ5_1 : RepackedBlocksOfPairs<RepackedQ5_1> {
  static constexpr int kStoredElements = 32, kStoredBytes = 24, kBytes256 = 192, kCodeBytes = 20;
  static constexpr int kPlanes[] = {128, 32, 32};

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    uint32_t w[8], e;
    uint4 q;
    read_stored_5(p + 8, p + 4, w);
    pack_5(w, q, e);
    store_as(row + 16 * block, q);
    store_as(row + 16 * blocks + 4 * block, e);
    store_as(row + kCodeBytes * blocks + 4 * block, load_word<1>(p));
  }
  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    unpack_5(load_as<uint4>(row + 16 * block), load_as<uint32_t>(row + 16 * blocks + 4 * block), w);
  }
};

}  // namespace LANE_NAMESPACE
