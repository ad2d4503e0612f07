// Values that are computed with when a program is compiled, or by the interpreter: they must be numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lane/error.h"
#include "lane/weights.h"

namespace lane {
namespace {

std::vector<double> decode(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::vector<double> values(tensor.ne[0] * tensor.ne[1] * tensor.ne[2]);
  tensor.format->decode(checkpoint.data(tensor).data(), values.size(), values.data());
  return values;
}

/// Refuses the first value that `sound` does not hold for.
std::vector<double> checked(const Checkpoint& checkpoint, const TensorInfo& tensor, bool (*sound)(double),
                            std::string_view expected) {
  std::vector<double> values = decode(checkpoint, tensor);
  const auto bad = std::ranges::find_if_not(values, sound);
  if (bad != values.end()) refuse_value(checkpoint, tensor, uint64_t(bad - values.begin()), *bad, expected);
  return values;
}

}  // namespace

void refuse_value(const Checkpoint& checkpoint, const TensorInfo& tensor, uint64_t index, double found,
                  std::string_view expected) {
  const Format& format = *tensor.format;
  const uint64_t at = tensor.offset + index / uint64_t(format.block_elements) * uint64_t(format.block_bytes);
  throw CheckpointError(printable(checkpoint.shards[size_t(tensor.shard)].path, 4096), at,
                        fmt::format("{} as weight {} (row {}, column {}) of tensor '{}'", found, index,
                                    index / tensor.columns(), index % tensor.columns(), printable(tensor.name)),
                        std::string(expected));
}

std::vector<double> finite_values(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  return checked(
      checkpoint, tensor, [](double value) { return std::isfinite(value); }, "finite scales and weights");
}

std::vector<double> rotary_factors(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  return checked(
      checkpoint, tensor, [](double value) { return std::isfinite(value) && value > 0; },
      "finite factors above 0, which frequencies are divided by");
}

}  // namespace lane
