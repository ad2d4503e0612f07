// What a weight format's file gives, and decoding built on it. A row of weights is read in groups of 32 consecutive
// weights, numbered from the row's start; a format's block holds one group or eight. A matrix begins at a multiple of
// 16 bytes; from there each format knows how aligned its fields are. Layouts: docs/formats.md.
//
// A format of integers, say Q4_K, is a struct:
//   kElements, kBytes   a block's weights and bytes
//   kScales             1, or 2 where each half of a group (16 weights) has its own scale and minimum
//   kHasMinimum         whether weights are offset
//   unpack(row, group, words)           the group's integers, signed bytes, four a word in the order of the weights
//   scales(row, group, scale, minimum)  weight = scale * integer - minimum; minima are written only if kHasMinimum
// Integers and scales have so few bits that scale * integer is exact in float. So a weight is rounded once, by the
// subtraction, and has the same bits whether or not a compiler contracts the two into one operation.
//
// A format of floats (kElements 1) is a struct with kElements, kBytes and decode(row, column).
#pragma once
#include "base/bytes.cuh"

namespace LANE_NAMESPACE {

constexpr int kGroup = 32;

/// The group's block: rows are contiguous blocks.
template <class Q>
__device__ __forceinline__ const uint8_t* block_of(const uint8_t* row, int group) {
  return row + static_cast<int64_t>(group / (Q::kElements / kGroup)) * Q::kBytes;
}
/// The group's place in its block.
template <class Q>
__device__ __forceinline__ int place_in_block(int group) {
  return group % (Q::kElements / kGroup);
}

/// Bytes from one row of `columns` weights to the next.
template <class Q>
__device__ __forceinline__ int64_t row_bytes(int columns) {
  return static_cast<int64_t>(columns / Q::kElements) * Q::kBytes;
}

/// Sixteen bytes of nibbles in the order of Q4_0 and its kin: the low ones are weights 0 to 15, the high ones 16 to 31.
template <int ALIGNMENT>
__device__ __forceinline__ void unpack_nibbles(const uint8_t* nibbles, uint32_t (&words)[8]) {
  uint32_t pairs[4];
  load_words<ALIGNMENT>(nibbles, pairs);
  LANE_UNROLL
  for (int i = 0; i < 4; i++) {
    words[i] = pairs[i] & 0x0f0f0f0fu;
    words[i + 4] = pairs[i] >> 4 & 0x0f0f0f0fu;
  }
}

template <class Q, bool FLOATS = Q::kElements == 1>
struct Decoder;

template <class Q>
struct Decoder<Q, false> {
  static __device__ __forceinline__ void group(const uint8_t* row, int group, int, float (&w)[kGroup]) {
    uint32_t words[8];
    float scale[Q::kScales], minimum[Q::kScales];
    Q::unpack(row, group, words);
    Q::scales(row, group, scale, minimum);
    bytes_to_floats(words, w);
    constexpr int kShare = kGroup / Q::kScales;
    LANE_UNROLL
    for (int s = 0; s < Q::kScales; s++) {
      LANE_UNROLL
      for (int i = s * kShare; i < (s + 1) * kShare; i++) {
        w[i] = Q::kHasMinimum ? scale[s] * w[i] - minimum[s] : scale[s] * w[i];
      }
    }
  }
};

template <class Q>
struct Decoder<Q, true> {
  static __device__ __forceinline__ void group(const uint8_t* row, int group, int count, float (&w)[kGroup]) {
    if (count >= kGroup) {
      LANE_UNROLL
      for (int i = 0; i < kGroup; i++) w[i] = Q::decode(row, group * kGroup + i);
      return;
    }
    LANE_UNROLL
    for (int i = 0; i < kGroup; i++) w[i] = i < count ? Q::decode(row, group * kGroup + i) : 0.0f;
  }
};

/// The group's weights as floats. `count`: how many of its 32 weights the row has (fewer than 32 only in the last group
/// of a row of floats); the others are zero.
template <class Q>
__device__ __forceinline__ void decode_group(const uint8_t* row, int group, int count, float (&w)[kGroup]) {
  Decoder<Q>::group(row, group, count, w);
}

}  // namespace LANE_NAMESPACE
