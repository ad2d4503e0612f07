#include "describe.h"

namespace lane {

Norm norm(const Source& source, const std::string& base, Size columns) {
  Norm result{.kind = source.row.norm, .epsilon = source.epsilon};
  result.gain = source.tensors.vector(source.row.norm_gain, base + ".weight", {.columns = columns});
  result.bias = source.tensors.vector(source.row.norm_bias, base + ".bias", {.columns = columns});
  return result;
}

std::optional<Norm> layer_norm(const Source& source, const Block& block, std::string_view name) {
  if (name.empty()) return std::nullopt;
  return norm(source, block.tensor(name), source.width);
}

}  // namespace lane
