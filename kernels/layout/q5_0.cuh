// Q5_0 repacked: 22 bytes a block, as in the file.
//   [16 B] x blocks   [4 B] x blocks: codes of 5 bits, see pack_5   [f16 d] x blocks
#pragma once
#include "layout/blocks.cuh"

namespace LANE_NAMESPACE {

/// The codes of stored Q5_0 and Q5_1 blocks: nibbles at `codes`, a fifth bit each at `high`.
__device__ __forceinline__ void read_stored_5(const uint8_t* codes, const uint8_t* high, uint32_t (&w)[8]) {
  const uint32_t bits = load_word<1>(high);
  for (int i = 0; i < 8; i++) {
    const uint32_t nibbles = load_word<1>(codes + 4 * (i & 3)) >> (i < 4 ? 0 : 4) & 0x0F0F0F0F;
    const uint32_t four = bits >> 4 * i & 15;
    w[i] = nibbles | (four & 1) << 4 | (four & 2) << 11 | (four & 4) << 18 | (four & 8) << 25;
  }
}

struct RepackedQ5_0 : RepackedBlocksOfHalves<RepackedQ5_0, 16> {
  static constexpr int kStoredElements = 32, kStoredBytes = 22, kBytes256 = 176, kCodeBytes = 20;
  static constexpr int kPlanes[] = {128, 32, 16};

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    uint32_t w[8], e;
    uint4 q;
    read_stored_5(p + 6, p + 2, w);
    pack_5(w, q, e);
    store_as(row + 16 * block, q);
    store_as(row + 16 * blocks + 4 * block, e);
    store_as(row + kCodeBytes * blocks + 2 * block, load_short(p));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    unpack_5(load_as<uint4>(row + 16 * block), load_as<uint32_t>(row + 16 * blocks + 4 * block), w);
  }
};

}  // namespace LANE_NAMESPACE
