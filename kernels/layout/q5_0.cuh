// Q5_0 repacked: 22 bytes a block, as in the file.
//   [16 B] x blocks   [4 B] x blocks: codes of 5 bits, see pack_5   [f16 d] x blocks
#pragma once
#include "layout/activation.cuh"

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

struct RepackedQ5_0 {
  static constexpr int kStoredElements = 32, kStoredBytes = 22, kBytes256 = 176;
  static constexpr bool kFloat = false;
  static constexpr int kParts = 1;  // of a block, each with an integer sum of its own
  static constexpr bool kSums = true;
  static constexpr float kTop = 32512.f;

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    uint32_t w[8], e;
    uint4 q;
    read_stored_5(p + 6, p + 2, w);
    pack_5(w, q, e);
    store_as(row + 16 * block, q);
    store_as(row + 16 * blocks + 4 * block, e);
    store_as(row + 20 * blocks + 2 * block, load_short(p));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    unpack_5(load_as<uint4>(row + 16 * block), load_as<uint32_t>(row + 16 * blocks + 4 * block), w);
  }
  static __device__ UnpackedBlock unpack(const uint8_t* row, int blocks, int block) {
    uint32_t w[8];
    words(row, blocks, block, w);
    UnpackedBlock u;
    bytes_of_words(w, 16, u.code);
    u.scale[0] = u.scale[1] = load_half(row + 20 * blocks + 2 * block);
    u.minimum[0] = u.minimum[1] = 0;
    return u;
  }

  static __device__ void decode(const uint8_t* row, int blocks, int block, float (&w)[32]) {
    weights_of(unpack(row, blocks, block), w);
  }

  struct Scale {
    float scale;
  };
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    return {load_half(row + 20 * blocks + 2 * block)};
  }
  static __device__ __forceinline__ void codes(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    words(row, blocks, block, w);
    subtract_from_bytes<16>(w);
  }
  static __device__ __forceinline__ float combine(float sum, const Scale& s, const int (&v)[kParts], float x_scale,
                                                  float) {
    return fmaf(s.scale * x_scale, static_cast<float>(v[0]), sum);
  }

  template <int Words>
  static __device__ __forceinline__ float add(float sum, const uint8_t* row, int blocks, int block,
                                              const Activation<Words>& x) {
    uint32_t w[8];
    words(row, blocks, block, w);
    const int v[] = {dot_block(w, x, -16 * (x.sum[0] + x.sum[1]))};
    return combine(sum, scale(row, blocks, block), v, x.scale, 0.f);
  }
};

}  // namespace LANE_NAMESPACE
