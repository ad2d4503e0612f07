// Rows of weights in float, quickly: for the float interpreter alone. Private to this library.
#pragma once
#include <cstddef>

#include "lane/formats.h"

namespace lane::reference {

/// Decodes `n` elements at `blocks` to float: exactly where float holds the weight, else rounded.
void decode_floats(const Format& format, const std::byte* blocks, size_t n, float* out);

/// a · b, in sums side by side.
float dot_floats(const float* a, const float* b, size_t n);

}  // namespace lane::reference
