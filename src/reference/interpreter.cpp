// The step: arrays for every value, and each op in order.
#include <fmt/format.h>

#include <algorithm>

#include "frame.h"
#include "lane/error.h"

namespace lane {
namespace {

using namespace reference;

template <class T>
using Run = void (*)(Frame<T>&, const Op&);

template <class T>
Run<T> run_of(OpKind kind) {
  switch (kind) {
    case OpKind::RowLookup:
      return run_row_lookup;
    case OpKind::Sum:
    case OpKind::Product:
      return run_elementwise;
    case OpKind::ScaledCopy:
    case OpKind::Silu:
    case OpKind::Gelu:
    case OpKind::Sigmoid:
    case OpKind::Softplus:
    case OpKind::SquareRelu:
    case OpKind::Softcap:
    case OpKind::Clamp:
      return run_map;
    case OpKind::RmsNorm:
    case OpKind::LayerNorm:
    case OpKind::LengthNorm:
      return run_norm;
    case OpKind::MatrixProduct:
    case OpKind::HeadProduct:
    case OpKind::ExpertProduct:
      return run_product;
    case OpKind::HeadSlice:
      return run_head_slice;
    case OpKind::Join:
    case OpKind::HeadJoin:
      return run_join;
    case OpKind::RowSlice:
    case OpKind::Rows:
      return run_rows;
    case OpKind::Rotation:
      return run_rotation;
    case OpKind::PositionScale:
      return run_position_scale;
    case OpKind::Attention:
      return run_attention;
    case OpKind::SiluGate:
    case OpKind::GeluGate:
    case OpKind::SigmoidGate:
    case OpKind::ClampedGate:
      return run_gate;
    case OpKind::Greatest:
      return run_greatest;
    case OpKind::TopChoice:
      return run_top_choice;
    case OpKind::ChosenShare:
      return run_chosen_share;
    case OpKind::ExpertBias:
      return run_expert_bias;
    case OpKind::ExpertSum:
      return run_expert_sum;
    case OpKind::ShortConvolution:
      return run_short_convolution;
    case OpKind::Shift:
      return run_shift;
    case OpKind::Decay:
      return run_decay;
    case OpKind::DeltaRule:
      return run_delta_rule;
    case OpKind::DeltaReading:
      return run_delta_reading;
    case OpKind::Write:
      return run_write;
  }
  throw InternalError("an op of no kind");
}

bool is_constant(const Value& v) { return v.kind == ValueKind::Constant || v.kind == ValueKind::Quantized; }

/// Whether operand 0 of the op is read a row at a time, as it lies in memory.
bool reads_rows(OpKind kind) {
  return kind == OpKind::RowLookup || kind == OpKind::MatrixProduct || kind == OpKind::HeadProduct ||
         kind == OpKind::ExpertProduct;
}

}  // namespace

template <class T>
struct Interpreter<T>::Impl {
  StepGraph graph;
  ThreadPool pool;
  Frame<T> frame;

  Impl(StepGraph g, const Constants& constants, std::optional<KvType> kv, int threads)
      : graph(std::move(g)), pool(threads), frame{graph, pool, kv, {}, {}, {}} {
    frame.reals.resize(graph.values.size());
    frame.integers.resize(graph.values.size());
    frame.matrices.resize(graph.values.size());
    for (size_t id = 0; id < graph.values.size(); ++id) allocate(id, constants);
    for (const Op& op : graph.ops)
      for (size_t i = 0; i < op.operands.size(); ++i)
        if (is_constant(graph.value(op.operands[i])) && !(reads_rows(op.kind) && i == 0)) widen(size_t(op.operands[i]));
  }

  void allocate(size_t id, const Constants& constants) {
    const Value& v = graph.values[id];
    if (is_constant(v)) {
      bind(id, constants);
    } else if (v.integers) {
      frame.integers[id].resize(size_t(v.shape.elements()));
    } else {
      frame.reals[id].resize(size_t(v.shape.elements()));
    }
  }

  void bind(size_t id, const Constants& constants) {
    const Value& v = graph.values[id];
    const ConstantData* data = constants.find(v.name);
    if (!data) throw UnboundError(v.name, "no constant of this name is given");
    const uint64_t rows = uint64_t(v.shape.experts * v.shape.rows), columns = uint64_t(v.shape.columns);
    if (columns % uint64_t(data->format->block_elements) != 0 ||
        data->bytes.size() != rows * data->format->row_bytes(columns))
      throw ShapeError(v.name, to_text(v.shape), fmt::format("{} bytes of {}", data->bytes.size(), data->format->name));
    frame.matrices[id] = {data->format, data->bytes.data(), v.shape.columns};
  }

  /// Vectors and other small constants are read as values: all rows are decoded once.
  void widen(size_t id) {
    const Shape& s = graph.values[id].shape;
    if (!frame.reals[id].empty()) return;
    frame.reals[id].resize(size_t(s.elements()));
    for (int64_t r = 0; r < s.experts * s.rows; ++r)
      decode_row(frame.matrices[id], r, frame.reals[id].data() + r * s.columns);
  }

  void take_inputs(const StepInputs& inputs) {
    for (size_t id = 0; id < graph.values.size(); ++id) {
      const Value& v = graph.values[id];
      if (v.kind != ValueKind::Input) continue;
      const auto it = inputs.find(v.name);
      if (it == inputs.end()) throw UsageError(fmt::format("input '{}' is missing", v.name));
      if (int64_t(it->second.size()) != v.shape.columns)
        throw UsageError(
            fmt::format("input '{}' has {} integers; accepted is {}", v.name, it->second.size(), v.shape.columns));
      frame.integers[id] = it->second;
    }
  }

  size_t find(std::string_view name, bool integers) const {
    const ValueId id = graph.find(name);
    const bool held =
        id != kNoValue && !(integers ? frame.integers[size_t(id)].empty() : frame.reals[size_t(id)].empty());
    if (!held)
      throw UsageError(
          fmt::format("the step holds no {} named '{}'", integers ? "integers" : "values", printable(name)));
    return size_t(id);
  }
};

template <class T>
Interpreter<T>::Interpreter(StepGraph graph, const Constants& constants, std::optional<KvType> kv, int threads) {
  impl_ = std::make_unique<Impl>(std::move(graph), constants, kv, threads);
}
template <class T>
Interpreter<T>::~Interpreter() = default;
template <class T>
Interpreter<T>::Interpreter(Interpreter&&) noexcept = default;
template <class T>
Interpreter<T>& Interpreter<T>::operator=(Interpreter&&) noexcept = default;

template <class T>
void Interpreter<T>::run(const StepInputs& inputs) {
  impl_->take_inputs(inputs);
  for (const Op& op : impl_->graph.ops) run_of<T>(op.kind)(impl_->frame, op);
}

template <class T>
void Interpreter<T>::reset() {
  for (size_t id = 0; id < impl_->graph.values.size(); ++id)
    if (impl_->graph.values[id].kind == ValueKind::Carried)
      std::fill(impl_->frame.reals[id].begin(), impl_->frame.reals[id].end(), T(0));
}

template <class T>
const StepGraph& Interpreter<T>::graph() const {
  return impl_->graph;
}
template <class T>
std::span<const T> Interpreter<T>::value(std::string_view name) const {
  return impl_->frame.reals[impl_->find(name, false)];
}
template <class T>
std::span<const int32_t> Interpreter<T>::integers(std::string_view name) const {
  return impl_->frame.integers[impl_->find(name, true)];
}
template <class T>
std::span<T> Interpreter<T>::state(std::string_view name) {
  const size_t id = impl_->find(name, false);
  if (impl_->graph.values[id].kind != ValueKind::Carried)
    throw UsageError(fmt::format("'{}' is no carried state", printable(name)));
  return impl_->frame.reals[id];
}

template class Interpreter<double>;
template class Interpreter<float>;

}  // namespace lane
