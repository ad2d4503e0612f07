// Weights for kernel tests: random blocks of any format, and their exact values.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "lane/formats.h"

namespace lane::test {

/// `count` random bytes: every bit pattern of a block is legal.
inline std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(generator());
  return bytes;
}

inline std::vector<double> exact_values(const Format& format, const uint8_t* blocks, size_t elements) {
  std::vector<double> values(elements);
  format.decode(reinterpret_cast<const std::byte*>(blocks), elements, values.data());
  return values;
}

/// Blocks of `elements` weights that are all finite and below 2^20 or so: blocks that are not are drawn again.
inline std::vector<uint8_t> random_weights(const Format& format, size_t elements, uint32_t seed) {
  const size_t size = static_cast<size_t>(format.block_bytes), weights = static_cast<size_t>(format.block_elements);
  std::vector<uint8_t> blocks = random_bytes(elements / weights * size, seed);
  for (size_t at = 0; at < blocks.size(); at += size) {
    for (uint32_t again = 1;; again++) {
      bool tame = true;
      for (double w : exact_values(format, &blocks[at], weights)) tame = tame && std::abs(w) < 0x1p20;
      if (tame) break;
      const std::vector<uint8_t> block = random_bytes(size, seed + 7919u * again + static_cast<uint32_t>(at));
      std::memcpy(&blocks[at], block.data(), size);
    }
  }
  return blocks;
}

inline std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(generator()) * 0x1p-31f - 1.0f;
  return values;
}

}  // namespace lane::test
