// Tensor types of GGUF files, a row each. Facts: docs/formats.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lane {

/// The tensor types that lanec computes with. Values are GGUF's ids.
enum class FormatId : int32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ4_NL = 20,
  IQ4_XS = 23,
  BF16 = 30,
  MXFP4 = 39,
};

struct Format {
  int32_t id;             // GGUF's number
  std::string_view name;  // "Q4_K": as users know it, and the struct's name in the kernel file
  int block_elements;     // weights a block; 1 for plain floats; a row's columns divide by it
  int block_bytes;
  std::string_view kernel;  // "quant/q4_k.cuh": the kernel file with this block's decode; empty: known by name only
  /// Exact decode of `n` elements (a multiple of block_elements) at `blocks`, in double: the oracle of every kernel.
  /// Null: known by name only.
  void (*decode)(const std::byte* blocks, size_t n, double* out);
  bool supported() const { return decode != nullptr; }
  /// Bytes of a row of `columns` elements.
  constexpr uint64_t row_bytes(uint64_t columns) const {
    return columns / uint64_t(block_elements) * uint64_t(block_bytes);
  }
};

/// All rows, ordered by id: every type that GGUF version 3 names and has not removed.
std::span<const Format> formats();
/// The row with this GGUF id, or null where GGUF has no such type.
const Format* find_format(int32_t id);
const Format* find_format(std::string_view name);
/// The names of those that lanec computes with, for messages: "F32, F16, Q4_0, …".
std::string supported_formats();
inline const Format& format(FormatId id) { return *find_format(static_cast<int32_t>(id)); }

}  // namespace lane
