// Q8_0 repacked: 34 bytes a block, as in the file.
//   [16 B first half] x blocks   [16 B second half] x blocks   [f16 d] x blocks
#pragma once
#include "layout/activation.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ8_0 {
  static constexpr int kStoredElements = 32, kStoredBytes = 34, kBytes256 = 272;
  static constexpr bool kFloat = false;
  static constexpr int kParts = 1;  // of a block, each with an integer sum of its own
  static constexpr bool kSums = false;
  static constexpr float kTop = 32512.f;

  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* p = stored + (first + block) * kStoredBytes;
    copy_16(row + 16 * block, p + 2);
    copy_16(row + 16 * blocks + 16 * block, p + 18);
    store_as(row + 32 * blocks + 2 * block, load_short(p));
  }

  static __device__ __forceinline__ void words(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    const uint4 a = load_as<uint4>(row + 16 * block), b = load_as<uint4>(row + 16 * blocks + 16 * block);
    w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w, w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
  }
  static __device__ UnpackedBlock unpack(const uint8_t* row, int blocks, int block) {
    uint32_t w[8];
    words(row, blocks, block, w);
    UnpackedBlock u;
    bytes_of_words(w, 0, u.code);
    u.scale[0] = u.scale[1] = load_half(row + 32 * blocks + 2 * block);
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
    return {load_half(row + 32 * blocks + 2 * block)};
  }
  static __device__ __forceinline__ void codes(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    words(row, blocks, block, w);
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
    const int v[] = {dot_block(w, x, 0)};
    return combine(sum, scale(row, blocks, block), v, x.scale, 0.f);
  }
};

}  // namespace LANE_NAMESPACE
