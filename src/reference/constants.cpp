// A graph's constants, bound by name.
#include "lane/error.h"
#include "lane/reference.h"
#include "lane/weights.h"

namespace lane {
namespace {

/// A vector may be written with more dimensions in the file, as long as its elements lie one after the other.
bool fits(const Value& constant, const TensorInfo& tensor) {
  const Shape& s = constant.shape;
  if (tensor.ne[3] != 1) return false;
  if (Shape{int64_t(tensor.ne[2]), int64_t(tensor.ne[1]), int64_t(tensor.ne[0])} == s) return true;
  const bool vector = s.experts == 1 && s.rows == 1 && tensor.format->block_elements == 1;
  return vector && tensor.ne[0] * tensor.ne[1] * tensor.ne[2] == uint64_t(s.columns);
}

ConstantData bind(const Value& constant, const Checkpoint& checkpoint) {
  const TensorInfo* tensor = bind_constant(checkpoint, constant.name);
  if (!tensor) throw UnboundError(constant.name, "no tensor of the checkpoint has this name");
  check_format(*tensor);
  if (!fits(constant, *tensor))
    throw ShapeError(constant.name, to_text(constant.shape),
                     to_text(Shape{int64_t(tensor->ne[2]), int64_t(tensor->ne[1]), int64_t(tensor->ne[0])}));
  return {tensor->format, checkpoint.data(*tensor)};
}

}  // namespace

Constants::Constants(const StepGraph& graph, const Checkpoint& checkpoint) {
  for (const Value& v : graph.values)
    if (v.kind == ValueKind::Constant || v.kind == ValueKind::Quantized) data_[v.name] = bind(v, checkpoint);
}

void Constants::set(const std::string& name, std::span<const float> values) {
  given_.push_back(std::make_unique<std::vector<float>>(values.begin(), values.end()));
  data_[name] = {&format(FormatId::F32), std::as_bytes(std::span<const float>(*given_.back()))};
}

void Constants::set(const std::string& name, const ConstantData& data) { data_[name] = data; }

const ConstantData* Constants::find(std::string_view name) const {
  const auto it = data_.find(name);
  return it == data_.end() ? nullptr : &it->second;
}

}  // namespace lane
