// Q6_K repacked: 26.25 bytes a block, as in the file.
//   [16 B] x blocks   [8 B] x blocks: codes of 6 bits, see pack_6   [2 x int8 scale] x blocks   [f16 d] x blocks / 8
#pragma once
#include "layout/blocks.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ6_K : RepackedHalfBlocks<RepackedQ6_K, 32> {
  static constexpr int kStoredElements = 256, kStoredBytes = 210, kBytes256 = 210, kCodeBytes = 24;
  static constexpr int kPlanes[] = {128, 64, 16, 2};
  // |sum of both halves| <= 2 * 128 * 16 * 32 * 16256 < 2^31, so the integer scales are applied in integers.
  static constexpr int kMostProduct = 128 * 32;
  static constexpr float kTop = 16256.f;

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* super = stored + (first + block) / 8 * kStoredBytes;
    const int half = block % 8 / 4, quarter = block % 4;
    const uint8_t *low = super + half * 64 + (quarter & 1) * 32, *high = super + 128 + half * 32;
    uint32_t w[8];
    for (int i = 0; i < 8; i++)
      w[i] = (load_word<1>(low + 4 * i) >> (quarter & 2 ? 4 : 0) & 0x0F0F0F0F) |
             (load_word<1>(high + 4 * i) >> 2 * quarter & 0x03030303) << 4;
    uint4 q;
    uint2 e;
    pack_6(w, q, e);
    store_as(row + 16 * block, q);
    store_as(row + 16 * blocks + 8 * block, e);
    store_as(row + kCodeBytes * blocks + 2 * block, load_short(super + 192 + block % 8 * 2));
    if (block % 8 == 0) store_as(row + (kCodeBytes + 2) * blocks + block / 4, load_short(super + 208));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    unpack_6(load_as<uint4>(row + 16 * block), load_as<uint2>(row + 16 * blocks + 8 * block), w);
  }
  static __device__ __forceinline__ uint2 share_of_block(const uint8_t* row, int blocks, int block, int c) {
    return share_of_6(load_as<uint4>(row + 16 * block), load_as<uint2>(row + 16 * blocks + 8 * block), c);
  }
};

}  // namespace LANE_NAMESPACE
