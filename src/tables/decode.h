// Exact decode of one block of each tensor type, in double. docs/formats.md gives the layouts and formulas.
#pragma once
#include <cstdint>

namespace lane::decode {

// Every function reads one block (its bytes as they lie in the file, at any address) and writes its elements in order.
using BlockDecode = void (*)(const uint8_t* block, double* out);

// One element each: decode_float.cpp.
void f32(const uint8_t* block, double* out);
void f16(const uint8_t* block, double* out);
void bf16(const uint8_t* block, double* out);

// Blocks of 32: decode_small.cpp.
void q4_0(const uint8_t* block, double* out);
void q4_1(const uint8_t* block, double* out);
void q5_0(const uint8_t* block, double* out);
void q5_1(const uint8_t* block, double* out);
void q8_0(const uint8_t* block, double* out);
void iq4_nl(const uint8_t* block, double* out);
void mxfp4(const uint8_t* block, double* out);

// Super-blocks of 256: decode_super.cpp.
void q2_k(const uint8_t* block, double* out);
void q3_k(const uint8_t* block, double* out);
void q4_k(const uint8_t* block, double* out);
void q5_k(const uint8_t* block, double* out);
void q6_k(const uint8_t* block, double* out);
void iq4_xs(const uint8_t* block, double* out);

/// The IEEE 754 binary16 at `bytes`, little-endian; exact, infinities and NaN included.
double half_at(const uint8_t* bytes);
/// The sixteen levels that IQ4_NL's and IQ4_XS's four bits choose among.
extern const int8_t kNonLinearLevels[16];

}  // namespace lane::decode
