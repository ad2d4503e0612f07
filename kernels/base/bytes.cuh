// Four bytes a word: reading them at the alignment a format gives, and computing on all four at once. Byte i of a word
// is its bits [8 i, 8 i + 8), so both chips' memory order.
#pragma once
#include "base/device.cuh"

namespace LANE_NAMESPACE {

/// Four bytes at an address that is a multiple of ALIGNMENT (1, 2 or 4), little-endian.
template <int ALIGNMENT>
__device__ __forceinline__ uint32_t load_word(const uint8_t* p) {
#if defined(__CUDA_ARCH__)
  if (ALIGNMENT >= 4) return *reinterpret_cast<const uint32_t*>(p);
  if (ALIGNMENT == 2) {
    const uint16_t* half = reinterpret_cast<const uint16_t*>(p);
    return half[0] | static_cast<uint32_t>(half[1]) << 16;
  }
  return p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
#else
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return word;
#endif
}

/// COUNT words at a multiple of ALIGNMENT (1, 2, 4, or 16 for multiples of four words).
template <int ALIGNMENT, int COUNT>
__device__ __forceinline__ void load_words(const uint8_t* p, uint32_t (&words)[COUNT]) {
#if defined(__CUDA_ARCH__)
  if constexpr (ALIGNMENT == 16) {
    static_assert(COUNT % 4 == 0, "whole vectors");
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(p + 4 * i);
      words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i++) words[i] = load_word<ALIGNMENT>(p + 4 * i);
  }
#else
  memcpy(words, p, sizeof words);
#endif
}

/// Two bytes at an even address, little-endian.
__device__ __forceinline__ uint16_t load_short(const uint8_t* p) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const uint16_t*>(p);
#else
  uint16_t bits;
  memcpy(&bits, p, sizeof bits);
  return bits;
#endif
}
/// An IEEE half at an even address.
__device__ __forceinline__ float load_half(const uint8_t* p) { return __half2float(__ushort_as_half(load_short(p))); }

/// byte - DIFFERENCE in each of four bytes that are below 128: no borrow leaves a byte.
template <int DIFFERENCE>
__device__ __forceinline__ uint32_t subtract_from_bytes(uint32_t word) {
  return ((word | 0x80808080u) - DIFFERENCE * 0x01010101u) ^ 0x80808080u;
}

/// Bits 0 to 3, each into the lowest bit of its byte: the product puts bit i at 7 i + i among copies that are masked
/// away.
__device__ __forceinline__ uint32_t spread_four_bits(uint32_t bits) {
  return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

/// Replaces each of 32 bytes below 16 by an entry of a table of sixteen bytes, four a word.
__device__ __forceinline__ void look_up_bytes(const uint32_t (&table)[4], uint32_t (&words)[8]) {
#if defined(__CUDACC__)
#pragma unroll
  for (int i = 0; i < 8; i++) {
    // The low three bits of each byte, as the selector's nibbles; bit 3 chooses between the table's halves.
    uint32_t selector = words[i] & 0x07070707u;
    selector = (selector | selector >> 4) & 0x00ff00ffu;
    selector = (selector | selector >> 8) & 0xffffu;
    const uint32_t upper = (words[i] >> 3 & 0x01010101u) * 0xffu;
    words[i] =
        (__byte_perm(table[0], table[1], selector) & ~upper) | (__byte_perm(table[2], table[3], selector) & upper);
  }
#else
  typedef uint8_t Sixteen __attribute__((vector_size(16)));
  Sixteen entries, bytes[2];
  memcpy(&entries, table, sizeof entries);
  memcpy(bytes, words, sizeof bytes);
  for (Sixteen& b : bytes) b = __builtin_shuffle(entries, b);
  memcpy(words, bytes, sizeof bytes);
#endif
}

/// Signed byte i % 4 of word i / 4, for i below 32.
__device__ __forceinline__ void bytes_to_floats(const uint32_t (&words)[8], float (&values)[32]) {
#if defined(__CUDA_ARCH__)
#pragma unroll
  for (int i = 0; i < 32; i++) values[i] = static_cast<float>(static_cast<int8_t>(words[i / 4] >> (8 * (i % 4))));
#else
  int8_t bytes[32];
  memcpy(bytes, words, sizeof bytes);
  for (int i = 0; i < 32; i++) values[i] = bytes[i];
#endif
}

}  // namespace LANE_NAMESPACE
