// IQ4_XS repacked: 17 bytes a block, as in the file.
//   [16 B nibbles] x blocks   [8 B header] x blocks / 8: the file's, f16 d and the scales of six bits
#pragma once
#include "layout/blocks.cuh"
#include "quant/iq4_values.cuh"

namespace LANE_NAMESPACE {

struct RepackedIQ4_XS : RepackedBlocks<RepackedIQ4_XS, 0, false> {
  static constexpr int kStoredElements = 256, kStoredBytes = 136, kBytes256 = 136, kCodeBytes = 16;
  static constexpr int kPlanes[] = {128, 8};

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* super = stored + (first + block) / 8 * kStoredBytes;
    copy_16(row + 16 * block, super + 8 + 16 * (block % 8));
    if (block % 8 == 0)
      store_as(row + kCodeBytes * blocks + block, make_uint2(load_word<1>(super), load_word<1>(super + 4)));
  }
  static __device__ __forceinline__ void words(const uint8_t* row, int, int block, uint32_t (&w)[8]) {
    unpack_nibbles(load_as<uint4>(row + 16 * block), w);
    nibbles_to_iq4_values(w);
  }
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    const uint2 header = load_as<uint2>(row + kCodeBytes * blocks + 8 * (block >> 3));
    const int low = static_cast<int>(header.y >> 4 * (block & 7) & 15);
    const int high = static_cast<int>(header.x >> (16 + 2 * (block & 7)) & 3);
    return {
        __half2float(__ushort_as_half(static_cast<uint16_t>(header.x))) * static_cast<float>((low | high << 4) - 32),
        0.f};
  }
};

}  // namespace LANE_NAMESPACE
