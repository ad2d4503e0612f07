// What the repacked layouts share: bit packings of 32 codes, loads, and the shape of an unpacked block.
//
// Codes travel as eight words of four bytes: word i holds codes 4i to 4i+3. The 5- and 6-bit packings keep most words
// ready after one AND, and the rest in the bits that are left: 19 and 18 bit operations for 32 codes, against 27 and 26
// for nibbles with a plane of high bits.
#pragma once
#include "base/bytes.cuh"
#include "layout/slices.h"

namespace LANE_NAMESPACE {

/// One block of 32 weights: weight i = scale[i / 16] * code[i] - minimum[i / 16], exact in double.
struct UnpackedBlock {
  int8_t code[32];
  float scale[2], minimum[2];
};

/// The block's weights, each rounded once.
__device__ __forceinline__ void weights_of(const UnpackedBlock& u, float (&w)[32]) {
  LANE_UNROLL
  for (int i = 0; i < 32; i++) w[i] = fmaf(u.scale[i / 16], static_cast<float>(u.code[i]), -u.minimum[i / 16]);
}

/// Bytes minus `Offset`, each; they are at most 127 + Offset, Offset at most 128.
template <int Offset>
__device__ __forceinline__ uint32_t without_offset(uint32_t w) {
  return (w + (128 - Offset) * 0x01010101u) ^ 0x80808080u;
}
template <int Offset>
__device__ __forceinline__ uint2 without_offset(uint2 w) {
  return make_uint2(without_offset<Offset>(w.x), without_offset<Offset>(w.y));
}
template <int Offset>
__device__ __forceinline__ void subtract_from_bytes(uint32_t (&w)[8]) {
  LANE_UNROLL
  for (int i = 0; i < 8; i++) w[i] = without_offset<Offset>(w[i]);
}

/// A load of sizeof(T) aligned bytes.
template <class T>
__device__ __forceinline__ T load_as(const uint8_t* p) {
  T v;
  memcpy(&v, __builtin_assume_aligned(p, alignof(T)), sizeof(T));
  return v;
}
template <class T>
__device__ __forceinline__ void store_as(uint8_t* p, T v) {
  memcpy(__builtin_assume_aligned(p, alignof(T)), &v, sizeof(T));
}

__device__ __forceinline__ void copy_16(uint8_t* to, const uint8_t* stored) {
  store_as(to, make_uint4(load_word<1>(stored), load_word<1>(stored + 4), load_word<1>(stored + 8),
                          load_word<1>(stored + 12)));
}

/// Words of nibbles: the low ones are words 0 to 3, the high ones 4 to 7.
__device__ __forceinline__ void unpack_nibbles(uint4 q, uint32_t (&w)[8]) {
  w[0] = q.x & 0x0F0F0F0F, w[1] = q.y & 0x0F0F0F0F, w[2] = q.z & 0x0F0F0F0F, w[3] = q.w & 0x0F0F0F0F;
  w[4] = q.x >> 4 & 0x0F0F0F0F, w[5] = q.y >> 4 & 0x0F0F0F0F, w[6] = q.z >> 4 & 0x0F0F0F0F,
  w[7] = q.w >> 4 & 0x0F0F0F0F;
}

/// Words c and c + 4, c from 0 to 3: what a lane of a tensor core takes of a block.
__device__ __forceinline__ uint2 share_of_words(const uint32_t (&w)[8], int c) {
  const bool odd = c & 1, upper = c & 2;
  return make_uint2(upper ? (odd ? w[3] : w[2]) : (odd ? w[1] : w[0]),
                    upper ? (odd ? w[7] : w[6]) : (odd ? w[5] : w[4]));
}

/// 32 codes of 5 bits in 20 bytes: words 0 to 4 in the low bits, words 5, 6 and 7 in pieces above them.
__device__ __forceinline__ void pack_5(const uint32_t (&w)[8], uint4& q, uint32_t& e) {
  q.x = w[0] | (w[5] & 0x07070707) << 5;
  q.y = w[1] | (w[5] & 0x18181818) << 3 | (w[6] & 0x08080808) << 2;
  q.z = w[2] | (w[6] & 0x07070707) << 5;
  q.w = w[3] | (w[7] & 0x18181818) << 3 | (w[6] & 0x10101010) << 1;
  e = w[4] | (w[7] & 0x07070707) << 5;
}
__device__ __forceinline__ void unpack_5(uint4 q, uint32_t e, uint32_t (&w)[8]) {
  w[0] = q.x & 0x1F1F1F1F, w[1] = q.y & 0x1F1F1F1F, w[2] = q.z & 0x1F1F1F1F, w[3] = q.w & 0x1F1F1F1F,
  w[4] = e & 0x1F1F1F1F;
  w[5] = (q.x >> 5 & 0x07070707) | (q.y >> 3 & 0x18181818);
  w[6] = (q.z >> 5 & 0x07070707) | (q.y >> 2 & 0x08080808) | (q.w >> 1 & 0x10101010);
  w[7] = (e >> 5 & 0x07070707) | (q.w >> 3 & 0x18181818);
}

/// 32 codes of 6 bits in 24 bytes: words 0 to 2 in the low bits and word 3 in the three top pairs; 4 to 7 likewise.
__device__ __forceinline__ void pack_6(const uint32_t (&w)[8], uint4& q, uint2& e) {
  q.x = w[0] | (w[3] & 0x30303030) << 2, q.y = w[1] | (w[3] & 0x0C0C0C0C) << 4, q.z = w[2] | (w[3] & 0x03030303) << 6;
  q.w = w[4] | (w[7] & 0x30303030) << 2, e.x = w[5] | (w[7] & 0x0C0C0C0C) << 4, e.y = w[6] | (w[7] & 0x03030303) << 6;
}
__device__ __forceinline__ uint32_t top_pairs(uint32_t a, uint32_t b, uint32_t c) {
  return (a >> 2 & 0x30303030) | (b >> 4 & 0x0C0C0C0C) | (c >> 6 & 0x03030303);
}
__device__ __forceinline__ void unpack_6(uint4 q, uint2 e, uint32_t (&w)[8]) {
  w[0] = q.x & 0x3F3F3F3F, w[1] = q.y & 0x3F3F3F3F, w[2] = q.z & 0x3F3F3F3F, w[3] = top_pairs(q.x, q.y, q.z);
  w[4] = q.w & 0x3F3F3F3F, w[5] = e.x & 0x3F3F3F3F, w[6] = e.y & 0x3F3F3F3F, w[7] = top_pairs(q.w, e.x, e.y);
}
/// Words c and c + 4 alone, c the same or not in a warp: by masks, not by branches.
__device__ __forceinline__ uint2 share_of_6(uint4 q, uint2 e, int c) {
  const uint32_t first = c == 0 ? ~0u : 0, second = c == 1 ? ~0u : 0, third = c == 2 ? 0x3F3F3F3Fu : 0,
                 top = c == 3 ? ~0u : 0;
  const auto word = [&](uint32_t x, uint32_t y, uint32_t z) {
    return (((x & first) | (y & second)) & 0x3F3F3F3F) | (z & third) | (top_pairs(x, y, z) & top);
  };
  return make_uint2(word(q.x, q.y, q.z), word(q.w, e.x, e.y));
}

/// The 8-bit scales and minimums of 256 weights: 6 bits each in 12 bytes, as K-quants store them.
__device__ __forceinline__ int stored_scale_6(const uint8_t* s, int group) {
  return group < 4 ? s[group] & 63 : (s[group + 4] & 15) | s[group - 4] >> 6 << 4;
}
__device__ __forceinline__ int stored_minimum_6(const uint8_t* s, int group) {
  return group < 4 ? s[group + 4] & 63 : s[group + 4] >> 4 | s[group] >> 6 << 4;
}

/// note [scale header]
/// 16 bytes for 8 blocks, so that a lane finds its own scale and minimum in two byte loads: f16 d, f16 dmin, 8 bytes of
/// scale | (minimum & 3) << 6, 8 nibbles of minimum >> 2. The same bits as stored, re-cut; no growth.
__device__ __forceinline__ void pack_scale_header(const uint8_t* stored, uint8_t* header) {
  uint8_t h[16];
  for (int i = 0; i < 4; i++) h[i] = stored[i], h[12 + i] = 0;
  for (int g = 0; g < 8; g++) {
    const int minimum = stored_minimum_6(stored + 4, g);
    h[4 + g] = static_cast<uint8_t>(stored_scale_6(stored + 4, g) | (minimum & 3) << 6);
    h[12 + g / 2] |= static_cast<uint8_t>(minimum >> 2 << (g & 1 ? 4 : 0));
  }
  copy_16(header, h);
}
struct BlockScale {
  float d, dmin;
  int scale, minimum;
};
/// Of a header in registers: where lanes have a row each, one wide load meets fewer banks twice than three narrow ones.
__device__ __forceinline__ BlockScale scale_of_header(const uint4& header, int block) {
  const uint32_t s = (block & 4 ? header.z : header.y) >> 8 * (block & 3), m = header.w >> 4 * (block & 7) & 15;
  return {__half2float(__ushort_as_half(static_cast<uint16_t>(header.x))),
          __half2float(__ushort_as_half(static_cast<uint16_t>(header.x >> 16))), static_cast<int>(s & 63),
          static_cast<int>((s >> 6 & 3) + m * 4)};
}
__device__ __forceinline__ BlockScale read_scale_header(const uint8_t* header, int block) {
  const uint32_t d = load_as<uint32_t>(header);
  const uint32_t s = header[4 + (block & 7)], m = header[12 + (block >> 1 & 3)] >> (block & 1) * 4 & 15;
  return {__half2float(__ushort_as_half(static_cast<uint16_t>(d))),
          __half2float(__ushort_as_half(static_cast<uint16_t>(d >> 16))), static_cast<int>(s & 63),
          static_cast<int>((s >> 6) + m * 4)};
}

/// The scales of a block and the next one, the first even, a byte each.
__device__ __forceinline__ uint32_t read_scale_pair(const uint8_t* header, int block) {
  return load_as<uint16_t>(header + 4 + (block & 7)) & 0x3F3F;
}
/// Of a block of one scale, and perhaps one minimum. Exact products where they come of a scale header: 11 bits times 6.
struct ScaleAndMinimum {
  float scale, minimum;
};
__device__ __forceinline__ ScaleAndMinimum scale_and_minimum(const BlockScale& s) {
  return {s.d * static_cast<float>(s.scale), s.dmin * static_cast<float>(s.minimum)};
}

__device__ __forceinline__ void bytes_of_words(const uint32_t (&w)[8], int offset, int8_t (&code)[32]) {
  LANE_UNROLL
  for (int i = 0; i < 32; i++) code[i] = static_cast<int8_t>(static_cast<int>(w[i / 4] >> 8 * (i % 4) & 255) - offset);
}

}  // namespace LANE_NAMESPACE
