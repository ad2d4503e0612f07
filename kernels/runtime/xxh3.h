// XXH3-64, the digest of headers, data and sidecars, by its published specification (seed 0, default secret). Only its
// long form is here, for more than 240 bytes: what is shorter is padded with zeros to 256 bytes first, since sizes are
// compared apart. So `digest` equals the library's XXH3_64bits of the padded bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/namespace.h"

namespace LANE_NAMESPACE {
namespace xxh3 {

constexpr size_t kStripe = 64, kSecretBytes = 192, kSecretStep = 8;
constexpr size_t kStripesPerBlock = (kSecretBytes - kStripe) / kSecretStep;
constexpr size_t kLongerThan = 240;

constexpr uint64_t kPrime32[3] = {0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du};
constexpr uint64_t kPrime64[5] = {0x9E3779B185EBCA87u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u, 0x85EBCA77C2B2AE63u,
                                  0x27D4EB2F165667C5u};

inline const uint8_t* secret() {
  static const uint8_t kSecret[kSecretBytes] = {
      0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
      0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
      0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
      0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
      0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
      0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
      0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
      0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
      0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
      0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
      0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};
  return kSecret;
}

inline uint64_t word(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

struct Accumulators {
  uint64_t lane[8] = {kPrime32[2], kPrime64[0], kPrime64[1], kPrime64[2],
                      kPrime64[3], kPrime32[1], kPrime64[4], kPrime32[0]};

  /// Local copies of the lanes let the compiler keep them in vector registers.
  void stripe(const uint8_t* bytes, const uint8_t* key) {
    uint64_t data[8], mixed[8];
    for (int i = 0; i < 8; ++i) data[i] = word(bytes + 8 * i);
    for (int i = 0; i < 8; ++i) mixed[i] = data[i] ^ word(key + 8 * i);
    for (int i = 0; i < 8; ++i) lane[i] += data[i ^ 1] + (mixed[i] & 0xffffffffu) * (mixed[i] >> 32);
  }
  void scramble() {
    const uint8_t* key = secret() + kSecretBytes - kStripe;
    for (int i = 0; i < 8; ++i) lane[i] = (lane[i] ^ (lane[i] >> 47) ^ word(key + 8 * i)) * kPrime32[0];
  }
  uint64_t merged(uint64_t bytes) const {
    uint64_t sum = bytes * kPrime64[0];
    for (int i = 0; i < 4; ++i) {
      const uint8_t* key = secret() + 11 + 16 * i;
      const unsigned __int128 product =
          static_cast<unsigned __int128>(lane[2 * i] ^ word(key)) * (lane[2 * i + 1] ^ word(key + 8));
      sum += static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    sum = (sum ^ (sum >> 37)) * 0x165667919E3779F9u;
    return sum ^ (sum >> 32);
  }
};

}  // namespace xxh3

/// The digest of bytes that come in parts. All but the last part hold whole blocks of kBlock bytes.
class RunningDigest {
 public:
  static constexpr size_t kBlock = xxh3::kStripe * xxh3::kStripesPerBlock;

  /// More than kStripe bytes must follow.
  void add(const uint8_t* p, size_t bytes) {
    stripes(p, bytes / xxh3::kStripe);
    bytes_ += bytes;
  }
  /// The last part, of kStripe bytes or more.
  uint64_t finish(const uint8_t* p, size_t bytes) {
    using namespace xxh3;
    // The last stripe is taken apart, with a key of its own, even where it is whole: hence the bytes - 1.
    stripes(p, (bytes - 1) / kStripe);
    sum_.stripe(p + bytes - kStripe, secret() + kSecretBytes - kStripe - 7);
    return sum_.merged(bytes_ + bytes);
  }

 private:
  void stripes(const uint8_t* p, size_t count) {
    using namespace xxh3;
    for (size_t s = 0; s < count; ++s) {
      sum_.stripe(p + s * kStripe, secret() + s % kStripesPerBlock * kSecretStep);
      if (s % kStripesPerBlock == kStripesPerBlock - 1) sum_.scramble();
    }
  }

  xxh3::Accumulators sum_;
  uint64_t bytes_ = 0;
};

inline uint64_t digest(const void* data, size_t bytes) {
  const uint8_t* p = static_cast<const uint8_t*>(data);
  if (bytes > xxh3::kLongerThan) return RunningDigest().finish(p, bytes);
  uint8_t padded[256] = {};
  if (bytes) std::memcpy(padded, p, bytes);
  return digest(padded, sizeof padded);
}

/// The digest of a file too long to hold: of its pieces' digests, 8 little-endian bytes each. Every piece but the last
/// has kPieceBytes.
constexpr size_t kPieceBytes = size_t{4} << 20;

class PieceDigest {
 public:
  void add(const void* piece, size_t bytes) { add(digest(piece, bytes)); }
  /// The next piece, known by its digest.
  void add(uint64_t piece) { pieces_.push_back(piece); }
  uint64_t value() const { return digest(pieces_.data(), pieces_.size() * sizeof(uint64_t)); }

 private:
  std::vector<uint64_t> pieces_;
};

}  // namespace LANE_NAMESPACE
