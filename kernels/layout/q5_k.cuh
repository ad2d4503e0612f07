// Q5_K repacked: 22 bytes a block, as in the file.
//   [16 B] x blocks   [4 B] x blocks: codes of 5 bits, see pack_5   [16 B header] x blocks / 8: note [scale header]
#pragma once
#include "layout/blocks.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ5_K : RepackedBlocks<RepackedQ5_K, 0, true> {
  static constexpr int kStoredElements = 256, kStoredBytes = 176, kBytes256 = 176, kCodeBytes = 20;
  static constexpr int kPlanes[] = {128, 32, 16};
  static constexpr bool kScaleHeader = true;
  static constexpr int kMostProduct = 63 * 31;

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* super = stored + (first + block) / 8 * kStoredBytes;
    const uint8_t *high = super + 16, *codes = super + 48 + block % 8 / 2 * 32;
    uint32_t w[8], e;
    uint4 q;
    for (int i = 0; i < 8; i++)
      w[i] = (load_word<1>(codes + 4 * i) >> (block & 1 ? 4 : 0) & 0x0F0F0F0F) |
             (load_word<1>(high + 4 * i) >> block % 8 & 0x01010101) << 4;
    pack_5(w, q, e);
    store_as(row + 16 * block, q);
    store_as(row + 16 * blocks + 4 * block, e);
    if (block % 8 == 0) pack_scale_header(super, row + kCodeBytes * blocks + 2 * block);
  }
  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    unpack_5(load_as<uint4>(row + 16 * block), load_as<uint32_t>(row + 16 * blocks + 4 * block), w);
  }
  static __device__ __forceinline__ BlockScale header(const uint8_t* row, int blocks, int block) {
    return read_scale_header(header_of(row, blocks, block), block);
  }
  static __device__ __forceinline__ const uint8_t* header_of(const uint8_t* row, int blocks, int block) {
    return row + kCodeBytes * blocks + 16 * (block >> 3);
  }
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    return scale_and_minimum(header(row, blocks, block));
  }
  static __device__ __forceinline__ Scale scale_by_rows(const uint8_t* row, int blocks, int block) {
    return scale_and_minimum(scale_of_header(load_as<uint4>(header_of(row, blocks, block)), block));
  }
};

}  // namespace LANE_NAMESPACE
