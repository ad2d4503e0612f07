#include "fast_rows.h"

#include <algorithm>

namespace lane::reference {
namespace {

/// Any format by its exact decode, a piece at a time.
void decode_by_doubles(const Format& format, const std::byte* blocks, size_t n, float* out) {
  double piece[256];
  const size_t step = 256 / size_t(format.block_elements) * size_t(format.block_elements);
  for (size_t at = 0; at < n; at += step) {
    const size_t count = std::min(step, n - at);
    format.decode(blocks + format.row_bytes(at), count, piece);
    for (size_t i = 0; i < count; ++i) out[at + i] = float(piece[i]);
  }
}

}  // namespace

void decode_floats(const Format& format, const std::byte* blocks, size_t n, float* out) {
  decode_by_doubles(format, blocks, n, out);
}

float dot(const float* a, const float* b, size_t n) {
  constexpr size_t kLanes = 8;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * b[i + l];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace lane::reference
