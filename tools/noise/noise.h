// Noise as tensors hold it: every block legal and finite, weights spread about 0 as a trained model's are.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lane/formats.h"
#include "noise/shapes.h"

namespace lane::noise {

/// A format or mix of formats, by the name that files of it carry.
struct Mix {
  std::string_view name;  // "q4_k_m"
  FormatId usual, fine;   // fine: the output, and Role::FineMatrix in the layers that take more bits
  /// Where rows are no whole number of blocks of the format above.
  FormatId usual_otherwise, fine_otherwise;
};
const Mix* find_mix(std::string_view name);
std::string mix_names();

/// The format of `tensor` in layer `layer` (-1: of none).
const Format& format_of(const Mix& mix, const Shape& shape, const TensorRow& tensor, int64_t layer);

/// A stretch of blocks, long enough that no two rows near each other are alike: tensors take it from varied offsets, so
/// that gigabytes cost no more than their writing.
std::string noise_page(const Format& format, Role role, uint64_t seed);

}  // namespace lane::noise
