// IQ4_NL repacked: 18 bytes a block, as in the file.
//   [16 B nibbles] x blocks   [f16 d] x blocks
#pragma once
#include "layout/blocks.cuh"
#include "quant/iq4_values.cuh"

namespace LANE_NAMESPACE {

struct RepackedIQ4_NL : RepackedBlocksOfHalves<RepackedIQ4_NL, 0> {
  static constexpr int kStoredElements = 32, kStoredBytes = 18, kBytes256 = 144, kCodeBytes = 16;
  static constexpr int kPlanes[] = {128, 16};

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    copy_16(row + 16 * block, p + 2);
    store_as(row + kCodeBytes * blocks + 2 * block, load_short(p));
  }
  static __device__ __forceinline__ void words(const uint8_t* row, int, int block, uint32_t (&w)[8]) {
    unpack_nibbles(load_as<uint4>(row + 16 * block), w);
    nibbles_to_iq4_values(w);
  }
};

}  // namespace LANE_NAMESPACE
