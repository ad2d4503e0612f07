// Q6_K repacked: 26.25 bytes a block, as in the file.
//   [16 B] x blocks   [8 B] x blocks: codes of 6 bits, see pack_6   [2 x int8 scale] x blocks   [f16 d] x blocks / 8
#pragma once
#include "layout/activation.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ6_K {
  static constexpr int kStoredElements = 256, kStoredBytes = 210, kBytes256 = 210;
  static constexpr bool kFloat = false;
  static constexpr int kParts = 2;  // of a block, each with an integer sum of its own
  static constexpr bool kSums = true;
  // |sum of both halves| <= 2 * 128 * 16 * 32 * 16256 < 2^31, so the integer scales are applied in integers.
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
    store_as(row + 24 * blocks + 2 * block, load_short(super + 192 + block % 8 * 2));
    if (block % 8 == 0) store_as(row + 26 * blocks + block / 4, load_short(super + 208));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    unpack_6(load_as<uint4>(row + 16 * block), load_as<uint2>(row + 16 * blocks + 8 * block), w);
  }
  /// One integer scale a half of the block.
  struct Scale {
    float d;
    int16_t half[2];
  };
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    const uint8_t* half = row + 24 * blocks + 2 * block;
    return {load_half(row + 26 * blocks + 2 * (block >> 3)),
            {static_cast<int8_t>(half[0]), static_cast<int8_t>(half[1])}};
  }
  static __device__ UnpackedBlock unpack(const uint8_t* row, int blocks, int block) {
    uint32_t w[8];
    words(row, blocks, block, w);
    UnpackedBlock u;
    bytes_of_words(w, 32, u.code);
    const Scale s = scale(row, blocks, block);
    for (int half = 0; half < 2; half++) {
      u.scale[half] = s.d * static_cast<float>(s.half[half]);
      u.minimum[half] = 0;
    }
    return u;
  }

  static __device__ void decode(const uint8_t* row, int blocks, int block, float (&w)[32]) {
    weights_of(unpack(row, blocks, block), w);
  }

  static __device__ __forceinline__ void codes(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    words(row, blocks, block, w);
    subtract_from_bytes<32>(w);
  }
  static __device__ __forceinline__ float combine(float sum, const Scale& s, const int (&v)[kParts], float x_scale,
                                                  float) {
    return fmaf(s.d * x_scale, static_cast<float>(v[0] * s.half[0] + v[1] * s.half[1]), sum);
  }

  template <int Words>
  static __device__ __forceinline__ float add(float sum, const uint8_t* row, int blocks, int block,
                                              const Activation<Words>& x) {
    uint32_t w[8];
    words(row, blocks, block, w);
    const int v[] = {dot_words<0, 4>(w, x, -32 * x.sum[0]), dot_words<4, 4>(w, x, -32 * x.sum[1])};
    return combine(sum, scale(row, blocks, block), v, x.scale, 0.f);
  }
};

}  // namespace LANE_NAMESPACE
