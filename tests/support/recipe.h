// Checkpoints from recipes: a golden case describes its checkpoint by a seed and a rule a tensor, and these functions
// write the same file from it, bit for bit, on every machine.
//
//   architecture  general.architecture, the first key
//   metadata      [[key, type, value], …] in file order; types u32 i32 f32 bool str arr_u32 arr_i32 arr_f32 arr_bool
//                 arr_str
//   tensors       [{name, shape, type, fill}, …] in file order; shape is rows first (the last dimension is contiguous)
//   seed          a 64-bit integer
//
// Every value follows from (seed, name, index) alone, all integers modulo 2^64:
//   h    = fnv1a64(name) xor seed · 0x9E3779B97F4A7C15
//   z(i) = splitmix64's output for the state h + (i + 1) · 0x9E3779B97F4A7C15
//   f(i) = ((z(i) >> 40) − 2^23 + 0.5) / 2^23, in (−1, 1)
// Fills:
//   uniform {mean, sd}   value i = mean + sd · √3 · f(i) in double, then rounded to float and to the tensor's type
//   negexp {lo, hi}      value i = −exp(lo + (hi − lo) · (f(i) + 1) / 2)
//   values {v}           as listed
//   blocks {scales, one_byte_scales}   byte j of the tensor's data is z(j) >> 56; then in block k the half at each
//                        offset of `scales` is magnitude · (1 + f(2^40 + k) / 2), and each one-byte scale as listed
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "support/files.h"

namespace lane::test {

/// The bytes of the GGUF file of a case's "checkpoint".
std::string checkpoint_bytes(const nlohmann::json& recipe);
void write_checkpoint(const nlohmann::json& recipe, const Path& path);

/// The half nearest to `value`, ties to even.
uint16_t half_bits(double value);

}  // namespace lane::test
