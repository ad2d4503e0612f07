#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "6_weights/repacked.h"
#include "lane/error.h"
#include "lane/weights.h"
#include "runtime/xxh3.h"

namespace lane {
namespace {

constexpr size_t kPayloadAlignment = 16;

/// Two rotations with the same key read the same table.
std::string rotary_key(const StepGraph& graph, const Op& rotation) {
  std::string key = rotation.operands.size() > 2 ? graph.value(rotation.operands[2]).name : "";
  for (const OptionKey option : {OptionKey::Turned, OptionKey::Base, OptionKey::Magnitude, OptionKey::Linear,
                                 OptionKey::Yarn, OptionKey::Original, OptionKey::Fast, OptionKey::Slow})
    key += rotation.has(option) ? fmt::format("|{}", rotation.option(option)) : "|";
  return key;
}

/// Positions that a step can stand at: the rows of its caches, which are what positions address.
int64_t context_of(const StepGraph& graph, const Options& options) {
  int64_t rows = options.ctx;
  for (const Op& op : graph.ops)
    if (op.kind == OpKind::Write) rows = std::max(rows, graph.value(op.result).shape.rows);
  return rows;
}

Shape shape_of(const TensorInfo& tensor) {
  return {int64_t(tensor.ne[2]), int64_t(tensor.ne[1]), int64_t(tensor.ne[0])};
}

/// Adds placements for the constants of one graph after the other; a constant that is there already is only checked.
class Placer {
 public:
  Placer(const Checkpoint& checkpoint, const Options& options) : checkpoint_(checkpoint), options_(options) {}

  void add(const StepGraph& graph) {
    for (const Op& op : graph.ops) {
      for (size_t i = 0; i < op.operands.size(); i++) {
        const Value& value = graph.value(op.operands[i]);
        const bool factors = op.kind == OpKind::Rotation && i == 2;  // consumed by the table
        if (value.kind == ValueKind::Constant && !factors) place_vector(value);
        if (value.kind == ValueKind::Quantized) place_matrix(value);
      }
      if (op.kind == OpKind::Rotation) place_rotary(graph, op);
    }
  }

  Weights take() { return std::move(weights_); }

 private:
  /// A vector may have more dimensions in the file, as long as it has as many elements.
  const TensorInfo& bind(const Value& value) const {
    const TensorInfo* tensor = bind_constant(checkpoint_, value.name);
    if (!tensor) throw UnboundError(value.name, "no tensor of the checkpoint has this name");
    const Shape bound = shape_of(*tensor);
    const bool same_vector = value.kind == ValueKind::Constant && value.shape.rows == 1 && value.shape.experts == 1 &&
                             bound.elements() == value.shape.elements();
    if (tensor->ne[3] != 1 || (bound != value.shape && !same_vector))
      throw ShapeError(value.name, to_text(value.shape), to_text(bound) + (tensor->ne[3] == 1 ? "" : " and more"));
    check_format(*tensor);
    return *tensor;
  }

  bool known(const Value& value) const {
    const int at = weights_.find(value.name);
    if (at < 0) return false;
    const Placement& placement = weights_.placements[size_t(at)];
    if (placement.shape != value.shape)
      throw ShapeError(value.name, to_text(value.shape), to_text(placement.shape), ExitCode::Internal);
    return true;
  }

  static Placement in_checkpoint(const Value& value, const TensorInfo& tensor) {
    Placement placement;
    placement.name = value.name;
    placement.tensor = tensor.name;
    placement.shape = value.shape;
    placement.format = tensor.format;
    placement.shard = tensor.shard;
    placement.offset = tensor.offset;
    placement.bytes = placement.device_bytes = tensor.bytes;
    return placement;
  }

  void place_matrix(const Value& value) {
    if (known(value)) return;
    weights_.placements.push_back(in_checkpoint(value, bind(value)));
  }

  /// Floats of 2 or 4 bytes stay in the checkpoint and are widened while loading; a vector in blocks is decoded now.
  void place_vector(const Value& value) {
    if (known(value)) return;
    const TensorInfo& tensor = bind(value);
    Placement placement = in_checkpoint(value, tensor);
    placement.layout = DeviceLayout::Floats;
    placement.device_bytes = uint64_t(value.shape.elements()) * sizeof(float);
    if (tensor.format->block_elements != 1) {
      const std::vector<double> values = finite_values(checkpoint_, fold(tensor));
      const std::vector<float> floats(values.begin(), values.end());
      put_in_sidecar(placement, floats.data(), floats.size() * sizeof(float));
    }
    weights_.placements.push_back(placement);
  }

  void place_rotary(const StepGraph& graph, const Op& rotation) {
    const std::string key = rotary_key(graph, rotation);
    if (weights_.rotary_tables.contains(key)) return;
    std::vector<double> factors;
    if (rotation.operands.size() > 2)
      factors = rotary_factors(checkpoint_, fold(bind(graph.value(rotation.operands[2]))));
    const std::vector<double> frequencies = rotary_frequencies(rotation, factors);
    Placement placement;
    placement.name = fmt::format("rotary_{}", weights_.rotary_tables.size());
    placement.shape = {1, context_of(graph, options_), 2 * int64_t(frequencies.size())};
    placement.layout = DeviceLayout::RotaryTable;
    placement.device_bytes = uint64_t(placement.shape.elements()) * sizeof(float);
    placement.magnitude = rotation.option(OptionKey::Magnitude, 1);
    put_in_sidecar(placement, frequencies.data(), frequencies.size() * sizeof(double));
    weights_.rotary_tables[key] = int(weights_.placements.size());
    weights_.placements.push_back(placement);
  }

  /// Notes that the sidecar depends on the tensor's values.
  const TensorInfo& fold(const TensorInfo& tensor) {
    const bool noted =
        std::ranges::any_of(weights_.folded, [&](const FoldedTensor& f) { return f.name == tensor.name; });
    if (noted) return tensor;
    const std::span<const std::byte> data = checkpoint_.data(tensor);
    weights_.folded.push_back({std::string(tensor.name), tensor.shard, tensor.offset, tensor.bytes,
                               LANE_NAMESPACE::digest(data.data(), data.size())});
    return tensor;
  }

  void put_in_sidecar(Placement& placement, const void* data, size_t bytes) {
    std::vector<std::byte>& payload = weights_.payload;
    payload.resize((payload.size() + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment);
    placement.format = &format(FormatId::F32);
    placement.in_sidecar = true;
    placement.shard = 0;
    placement.offset = payload.size();
    placement.bytes = bytes;
    payload.resize(payload.size() + bytes);
    std::memcpy(payload.data() + placement.offset, data, bytes);
  }

  const Checkpoint& checkpoint_;
  const Options& options_;
  Weights weights_;
};

}  // namespace

int Weights::find(std::string_view name) const {
  const auto at =
      std::find_if(placements.begin(), placements.end(), [&](const Placement& p) { return p.name == name; });
  return at == placements.end() ? -1 : int(at - placements.begin());
}

int Weights::rotary(const StepGraph& graph, const Op& rotation) const {
  const auto at = rotary_tables.find(rotary_key(graph, rotation));
  return at == rotary_tables.end() ? -1 : at->second;
}

Weights place_weights(const std::vector<const StepGraph*>& graphs, const Checkpoint& checkpoint,
                      const Options& options) {
  Placer placer(checkpoint, options);
  for (const StepGraph* graph : graphs) placer.add(*graph);
  Weights weights = placer.take();
  repack_matrices(weights, graphs, options);
  return weights;
}

}  // namespace lane
