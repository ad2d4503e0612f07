// Q4_K repacked: 18 bytes a block, as in the file.
//   [16 B nibbles] x blocks   [16 B header] x blocks / 8      see note [scale header]
#pragma once
#include "layout/activation.cuh"

namespace LANE_NAMESPACE {

struct RepackedQ4_K {
  static constexpr int kStoredElements = 256, kStoredBytes = 144, kBytes256 = 144;
  static constexpr int kPlanes[] = {128, 16};
  static constexpr bool kFloat = false;
  static constexpr int kParts = 1;  // of a block, each with an integer sum of its own
  static constexpr bool kSums = true;
  static constexpr bool kMinimums = true, kScaleHeader = true;
  static constexpr int kMostProduct = 63 * 15;
  static constexpr float kTop = 32512.f;  // the largest two-word integer: 127 * 256

  /// One block of a row: `stored` is the row's first stored block, `first` the slice's first block in the row.
  static __device__ void pack(uint8_t* row, int blocks, int block, const uint8_t* stored, int first) {
    const uint8_t* super = stored + (first + block) / 8 * kStoredBytes;
    const uint8_t* codes = super + 16 + block % 8 / 2 * 32;
    const int shift = block & 1 ? 4 : 0;
    uint32_t q[4];
    for (int i = 0; i < 4; i++) {
      const uint32_t low = load_word<1>(codes + 4 * i) >> shift & 0x0F0F0F0F;
      q[i] = low | (load_word<1>(codes + 16 + 4 * i) >> shift & 0x0F0F0F0F) << 4;
    }
    store_as(row + 16 * block, make_uint4(q[0], q[1], q[2], q[3]));
    if (block % 8 == 0) pack_scale_header(super, row + 16 * blocks + 2 * block);
  }

  static __device__ UnpackedBlock unpack(const uint8_t* row, int blocks, int block) {
    uint32_t w[8];
    unpack_nibbles(load_as<uint4>(row + 16 * block), w);
    const BlockScale s = header(row, blocks, block);
    UnpackedBlock u;
    bytes_of_words(w, 0, u.code);
    u.scale[0] = u.scale[1] = s.d * static_cast<float>(s.scale);
    u.minimum[0] = u.minimum[1] = s.dmin * static_cast<float>(s.minimum);
    return u;
  }

  static __device__ void decode(const uint8_t* row, int blocks, int block, float (&w)[32]) {
    weights_of(unpack(row, blocks, block), w);
  }

  using Scale = ScaleAndMinimum;
  static __device__ __forceinline__ BlockScale header(const uint8_t* row, int blocks, int block) {
    return read_scale_header(header_of(row, blocks, block), block);
  }
  static __device__ __forceinline__ const uint8_t* header_of(const uint8_t* row, int blocks, int block) {
    return row + 16 * blocks + 16 * (block >> 3);
  }
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    return scale_and_minimum(header(row, blocks, block));
  }
  static __device__ __forceinline__ Scale scale_by_rows(const uint8_t* row, int blocks, int block) {
    return scale_and_minimum(scale_of_header(load_as<uint4>(header_of(row, blocks, block)), block));
  }
  static __device__ __forceinline__ void codes(const uint8_t* row, int, int block, uint32_t (&w)[8]) {
    unpack_nibbles(load_as<uint4>(row + 16 * block), w);
  }
  static constexpr bool kWordShares = true;  // whether share() loads no more than it gives
  /// Words c and c + 4 of codes().
  static __device__ __forceinline__ uint2 share(const uint8_t* row, int, int block, int c) {
    const uint32_t q = load_as<uint32_t>(row + 16 * block + 4 * c);
    return make_uint2(q & 0x0F0F0F0F, q >> 4 & 0x0F0F0F0F);
  }
  static __device__ __forceinline__ float combine(float sum, const Scale& s, const int (&v)[kParts], float x_scale,
                                                  float x_total) {
    return fmaf(-s.minimum, x_total, fmaf(s.scale * x_scale, static_cast<float>(v[0]), sum));
  }

  template <int Words>
  static __device__ __forceinline__ float add(float sum, const uint8_t* row, int blocks, int block,
                                              const Activation<Words>& x) {
    const uint4 q = load_as<uint4>(row + 16 * block);
    // The high nibbles go in as they lie, 16 times too large, and one shift of the sum corrects it.
    const uint32_t w[8] = {q.x & 0x0F0F0F0F, q.y & 0x0F0F0F0F, q.z & 0x0F0F0F0F, q.w & 0x0F0F0F0F,
                           q.x & 0xF0F0F0F0, q.y & 0xF0F0F0F0, q.z & 0xF0F0F0F0, q.w & 0xF0F0F0F0};
    const int v[] = {dot_words<0, 4>(w, x, dot_words<4, 4, true>(w, x, 0) >> 4)};
    return combine(sum, scale(row, blocks, block), v, x.scale, x.total());
  }
};

}  // namespace LANE_NAMESPACE
