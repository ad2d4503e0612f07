// What the layouts of blocks with one scale, and perhaps one minimum, have in common; and those with a scale a half. A
// format adds how its codes and scales lie: see layout/q4_0.cuh for a short one.
#pragma once
#include "layout/activation.cuh"

namespace LANE_NAMESPACE {

/// `Format` has
///   words(row, blocks, block, w)   the codes, four bytes a word, before `Offset` is subtracted
///   scale(row, blocks, block)      the block's Scale
/// and pack(). Weight = scale * (code - Offset) - minimum.
template <class Format, int Offset, bool HasMinimum>
struct RepackedBlocks {
  static constexpr bool kFloat = false;
  static constexpr int kParts = 1;  // of a block, each with an integer sum of its own
  static constexpr bool kSums = Offset != 0 || HasMinimum;
  static constexpr bool kMinimums = HasMinimum, kScaleHeader = false;
  static constexpr bool kWordShares = false;  // whether share() loads no more than it gives
  static constexpr float kTop = 32512.f;      // the largest two-word integer: 127 * 256
  static constexpr int kMostProduct = 0;      // |integer scale * code|, at most, where scales are integers

  using Scale = ScaleAndMinimum;

  static __device__ UnpackedBlock unpack(const uint8_t* row, int blocks, int block) {
    uint32_t w[8];
    Format::words(row, blocks, block, w);
    const Scale s = Format::scale(row, blocks, block);
    UnpackedBlock u;
    bytes_of_words(w, Offset, u.code);
    u.scale[0] = u.scale[1] = s.scale;
    u.minimum[0] = u.minimum[1] = s.minimum;
    return u;
  }
  static __device__ void decode(const uint8_t* row, int blocks, int block, float (&w)[32]) {
    weights_of(unpack(row, blocks, block), w);
  }
  /// scale(), for warps whose lanes have a row each.
  static __device__ __forceinline__ Scale scale_by_rows(const uint8_t* row, int blocks, int block) {
    return Format::scale(row, blocks, block);
  }

  static __device__ __forceinline__ void codes(const uint8_t* row, int blocks, int block, uint32_t (&w)[8]) {
    Format::words(row, blocks, block, w);
    if (Offset) subtract_from_bytes<Offset>(w);
  }
  static __device__ __forceinline__ uint2 share(const uint8_t* row, int blocks, int block, int c) {
    uint32_t w[8];
    Format::words(row, blocks, block, w);
    const uint2 two = share_of_words(w, c);
    return Offset ? without_offset<Offset>(two) : two;
  }
  static __device__ __forceinline__ float combine(float sum, const Scale& s, const int (&v)[kParts], float x_scale,
                                                  float x_total) {
    sum = fmaf(s.scale * x_scale, static_cast<float>(v[0]), sum);
    return HasMinimum ? fmaf(-s.minimum, x_total, sum) : sum;
  }

  template <int Words>
  static __device__ __forceinline__ float add(float sum, const uint8_t* row, int blocks, int block,
                                              const Activation<Words>& x) {
    uint32_t w[8];
    Format::words(row, blocks, block, w);
    const int v[] = {dot_block(w, x, Offset ? -Offset * (x.sum[0] + x.sum[1]) : 0)};
    return combine(sum, Format::scale(row, blocks, block), v, x.scale, HasMinimum ? x.total() : 0.f);
  }
};

/// A plane of halves d, or of pairs (d, m) where weight = d * code + m, one a block.
template <class Format, int Offset>
struct RepackedBlocksOfHalves : RepackedBlocks<Format, Offset, false> {
  using Scale = typename RepackedBlocks<Format, Offset, false>::Scale;
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    return {load_half(row + Format::kCodeBytes * blocks + 2 * block), 0.f};
  }
};
template <class Format>
struct RepackedBlocksOfPairs : RepackedBlocks<Format, 0, true> {
  using Scale = typename RepackedBlocks<Format, 0, true>::Scale;
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    const uint32_t pair = load_as<uint32_t>(row + Format::kCodeBytes * blocks + 4 * block);
    return {__half2float(__ushort_as_half(static_cast<uint16_t>(pair))),
            -__half2float(__ushort_as_half(static_cast<uint16_t>(pair >> 16)))};
  }
};

/// `Format` has words(), pack(), kTop and kMostProduct as above: |sum of both halves| * kTop stays below 2^31, so that
/// the halves' integer scales are applied in integers. A plane of two int8 scales a block, then one of a half d for
/// eight blocks. Weight = d * scale of the half * (code - Offset).
template <class Format, int Offset>
struct RepackedHalfBlocks {
  static constexpr bool kFloat = false, kSums = true, kMinimums = false, kScaleHeader = false;
  static constexpr int kParts = 2;  // of a block, each with an integer sum of its own
  static constexpr bool kWordShares = false;

  /// One integer scale a half of the block.
  struct Scale {
    float d;
    int16_t half[2];
  };
  /// A block's two scales, and behind them the next one's.
  static __device__ __forceinline__ const uint8_t* scale_bytes(const uint8_t* row, int blocks, int block) {
    return row + Format::kCodeBytes * blocks + 2 * block;
  }
  static __device__ __forceinline__ Scale scale(const uint8_t* row, int blocks, int block) {
    const uint8_t* half = scale_bytes(row, blocks, block);
    return {load_half(row + (Format::kCodeBytes + 2) * blocks + 2 * (block >> 3)),
            {static_cast<int8_t>(half[0]), static_cast<int8_t>(half[1])}};
  }
  static __device__ __forceinline__ Scale scale_by_rows(const uint8_t* row, int blocks, int block) {
    const uint32_t halves = load_as<uint16_t>(scale_bytes(row, blocks, block));
    return {load_half(row + (Format::kCodeBytes + 2) * blocks + 2 * (block >> 3)),
            {static_cast<int8_t>(halves), static_cast<int8_t>(halves >> 8)}};
  }
  static __device__ UnpackedBlock unpack(const uint8_t* row, int blocks, int block) {
    uint32_t w[8];
    Format::words(row, blocks, block, w);
    UnpackedBlock u;
    bytes_of_words(w, Offset, u.code);
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
    Format::words(row, blocks, block, w);
    subtract_from_bytes<Offset>(w);
  }
  static __device__ __forceinline__ uint2 share(const uint8_t* row, int blocks, int block, int c) {
    return without_offset<Offset>(Format::share_of_block(row, blocks, block, c));
  }
  /// Words c and c + 4 of words(); a format may know a shorter way.
  static __device__ __forceinline__ uint2 share_of_block(const uint8_t* row, int blocks, int block, int c) {
    uint32_t w[8];
    Format::words(row, blocks, block, w);
    return share_of_words(w, c);
  }
  static __device__ __forceinline__ float combine(float sum, const Scale& s, const int (&v)[kParts], float x_scale,
                                                  float) {
    return fmaf(s.d * x_scale, static_cast<float>(v[0] * s.half[0] + v[1] * s.half[1]), sum);
  }

  template <int Words>
  static __device__ __forceinline__ float add(float sum, const uint8_t* row, int blocks, int block,
                                              const Activation<Words>& x) {
    uint32_t w[8];
    Format::words(row, blocks, block, w);
    const int v[] = {dot_words<0, 4>(w, x, -Offset * x.sum[0]), dot_words<4, 4>(w, x, -Offset * x.sum[1])};
    return combine(sum, scale(row, blocks, block), v, x.scale, 0.f);
  }
};

}  // namespace LANE_NAMESPACE
