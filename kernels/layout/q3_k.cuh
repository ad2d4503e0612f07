// Q3_K repacked: 14.25 bytes a block, half a byte more than in the file: a scale of six bits takes a byte.
//   [8 B low two bits] x blocks   [4 B third bit] x blocks   [2 x int8 scale] x blocks   [f16 d] x blocks / 8
// Byte b of the low parts has bits 2 i and 2 i + 1 of words i and i + 4; of the third bits, bit i of word i.
#pragma once
#include "layout/blocks.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ3_K : RepackedHalfBlocks<RepackedQ3_K, 4> {
  static constexpr int kStoredElements = 256, kStoredBytes = 110, kBytes256 = 114, kCodeBytes = 12;
  static constexpr int kPlanes[] = {64, 32, 16, 2};
  static constexpr int kMostProduct = 32 * 4;
  static constexpr float kTop = 32512.f;  // |sum of both halves| <= 2 * 32 * 16 * 4 * 32512 < 2^31

  static __device__ int stored_scale(const uint8_t* packed, int s) {
    const int low = packed[s % 8] >> (4 * (s / 8)) & 15, high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
    return (low | high << 4) - 32;
  }
  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* super = stored + (first + block) / 8 * kStoredBytes;
    const int b = block % 8;
    uint32_t low[2] = {0, 0}, high = 0;
    for (int i = 0; i < 8; i++) {
      low[i / 4] |= (load_word<1>(super + 32 + b / 4 * 32 + 4 * i) >> 2 * (b % 4) & 0x03030303) << 2 * (i % 4);
      high |= (load_word<1>(super + 4 * i) >> b & 0x01010101) << i;
    }
    store_as(row + 8 * block, make_uint2(low[0], low[1]));
    store_as(row + 8 * blocks + 4 * block, high);
    for (int half = 0; half < 2; half++)
      row[kCodeBytes * blocks + 2 * block + half] = static_cast<uint8_t>(stored_scale(super + 96, 2 * b + half));
    if (b == 0) store_as(row + (kCodeBytes + 2) * blocks + block / 4, load_short(super + 108));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    const uint2 low = load_as<uint2>(row + 8 * block);
    const uint32_t high = load_as<uint32_t>(row + 8 * blocks + 4 * block);
    LANE_UNROLL
    for (int i = 0; i < 8; i++)
      w[i] = ((i < 4 ? low.x : low.y) >> 2 * (i % 4) & 0x03030303) | (high >> i & 0x01010101) << 2;
  }
};

}  // namespace LANE_NAMESPACE
