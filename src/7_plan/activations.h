// How products see their activations, and what a block's shared memory holds of them: as kernels/fused/activations.cuh.
#pragma once
#include "lane/chip.h"
#include "lane/formats.h"
#include "lane/graph.h"
#include "lane/options.h"

namespace lane {

enum class ActivationKind { Floats, Int8x2, Int8 };

constexpr int64_t kMostPreparedTokens = 8;
constexpr int64_t kPreparedBytes = 48 << 10;  // what any chip's block has without asking for more

inline ActivationKind activation_kind(const Options& options, const Format& format) {
  if (options.activations == Activations::F32 || format.block_elements == 1) return ActivationKind::Floats;
  return options.activations == Activations::Int8x2 ? ActivationKind::Int8x2 : ActivationKind::Int8;
}

/// The kernels' name of it.
constexpr const char* policy_name(ActivationKind kind) {
  return kind == ActivationKind::Floats ? "Floats" : kind == ActivationKind::Int8x2 ? "Int8x2" : "Int8";
}

/// Bytes of activations `x` in shared memory: floats, or groups of 32 with their scale and sums.
constexpr int64_t prepared_bytes(ActivationKind kind, const Shape& x) {
  switch (kind) {
    case ActivationKind::Floats:
      return x.elements() * 4;
    case ActivationKind::Int8x2:
      return x.elements() / 32 * 80;
    case ActivationKind::Int8:
      return x.elements() / 32 * 48;
  }
  return 0;
}

/// What a block of a grouped product takes for activation rows, at most: two blocks fit a multiprocessor.
inline int64_t grouped_shared_bytes(const Chip& chip) { return chip.shared_bytes / 2; }

constexpr bool fits_prepared(ActivationKind kind, const Shape& x) {
  return x.rows <= kMostPreparedTokens && prepared_bytes(kind, x) <= kPreparedBytes;
}

}  // namespace lane
