#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "lane/error.h"
#include "lane/program.h"
#include "lane/weights.h"

namespace lane {
namespace {

/// "attn_q_12" is ("attn_q", 12); nothing where the name does not end in a layer's number.
struct LayerName {
  std::string_view stem;
  std::string_view layer;
};
std::optional<LayerName> layer_name(std::string_view name) {
  const size_t cut = name.rfind('_');
  if (cut == std::string_view::npos || cut == 0 || cut + 1 == name.size()) return std::nullopt;
  const std::string_view digits = name.substr(cut + 1);
  for (const char c : digits)
    if (!std::isdigit(static_cast<unsigned char>(c))) return std::nullopt;
  return LayerName{name.substr(0, cut), digits};
}

/// `stem`.weight, or the stem itself; "X_bias" is X.bias.
const TensorInfo* bind_stem(const Checkpoint& checkpoint, const std::string& stem) {
  constexpr std::string_view kBias = "_bias";
  if (const TensorInfo* weight = checkpoint.tensor(stem + ".weight")) return weight;
  if (stem.ends_with(kBias))
    if (const TensorInfo* bias = checkpoint.tensor(stem.substr(0, stem.size() - kBias.size()) + ".bias")) return bias;
  return checkpoint.tensor(stem);
}

}  // namespace

const TensorInfo* bind_constant(const Checkpoint& checkpoint, std::string_view name) {
  if (const auto layer = layer_name(name))
    if (const TensorInfo* tensor = bind_stem(checkpoint, fmt::format("blk.{}.{}", layer->layer, layer->stem)))
      return tensor;
  if (const TensorInfo* tensor = bind_stem(checkpoint, std::string(name))) return tensor;
  // Dots within a tensor's name are underscores in the text: blk.0.shortconv.conv.weight is shortconv_conv_0.
  for (const TensorInfo& tensor : checkpoint.tensors)
    if (constant_name(tensor.name) == name) return &tensor;
  return nullptr;
}

void check_format(const TensorInfo& tensor) {
  if (!tensor.format->supported())
    throw FormatError(printable(tensor.name), std::string(tensor.format->name), "no kernel reads this type");
}

}  // namespace lane
