#include "7_plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "7_plan/rules.h"
#include "lane/error.h"

namespace lane {
namespace {

constexpr int64_t kElementThreads = 256;

using Lower = void (*)(Lowering&, const StepOp&);

Lower lower_of(Fused fused) {
  switch (fused) {
    case Fused::None:
      return nullptr;
    case Fused::Products:
      return lower_products;
    case Fused::GatedProduct:
      return lower_gated_product;
    case Fused::AttentionInputs:
      return lower_attention_inputs;
    case Fused::Choice:
      return lower_choice;
    case Fused::SplitAttention:
      return lower_split_attention;
    case Fused::ChunkAttention:
      return lower_chunk_attention;
    case Fused::Routing:
      return lower_routing;
    case Fused::ExpertGate:
      return lower_expert_gate;
    case Fused::Convolution:
      return lower_convolution;
    case Fused::Delta:
      return lower_delta;
    case Fused::DeltaChunk:
      return lower_delta_chunk;
    case Fused::Chain:
      return lower_chain;
  }
  return nullptr;
}

Lower lower_of(const StepOp& op) {
  if (op.fused != Fused::None) return lower_of(op.fused);
  switch (op.kind) {
    case OpKind::RowLookup:
      return lower_row_lookup;
    case OpKind::MatrixProduct:
      return lower_matrix_product;
    case OpKind::HeadProduct:
      return lower_head_product;
    case OpKind::ExpertProduct:
      return lower_expert_product;
    case OpKind::RmsNorm:
    case OpKind::LayerNorm:
    case OpKind::LengthNorm:
      return lower_norm;
    case OpKind::ScaledCopy:
    case OpKind::Silu:
    case OpKind::Gelu:
    case OpKind::Sigmoid:
    case OpKind::Softplus:
    case OpKind::SquareRelu:
    case OpKind::Softcap:
    case OpKind::Clamp:
      return lower_map;
    case OpKind::Sum:
    case OpKind::Product:
      return lower_combine;
    case OpKind::SiluGate:
    case OpKind::GeluGate:
    case OpKind::SigmoidGate:
    case OpKind::ClampedGate:
      return lower_gate;
    case OpKind::HeadSlice:
      return lower_head_slice;
    case OpKind::Join:
    case OpKind::HeadJoin:
      return lower_join;
    case OpKind::Rows:
      return lower_rows;
    case OpKind::RowSlice:
      return nullptr;  // a view: folding leaves none
    case OpKind::Rotation:
      return lower_rotation;
    case OpKind::PositionScale:
      return lower_position_scale;
    case OpKind::Attention:
      return lower_attention;
    case OpKind::Greatest:
      return lower_greatest;
    case OpKind::TopChoice:
      return lower_top_choice;
    case OpKind::ChosenShare:
      return lower_chosen_share;
    case OpKind::ExpertBias:
      return lower_expert_bias;
    case OpKind::ExpertSum:
      return lower_expert_sum;
    case OpKind::ShortConvolution:
      return lower_short_convolution;
    case OpKind::Shift:
      return lower_shift;
    case OpKind::Decay:
      return lower_decay;
    case OpKind::DeltaRule:
    case OpKind::DeltaReading:
      return lower_delta;
    case OpKind::Write:
      return lower_write;
  }
  return nullptr;
}

}  // namespace

Lowering::Lowering(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options,
                   const Chip& chip)
    : weights_(weights), options_(options), chip_(chip) {
  check_rule_names(options);
  step_ = fuse(fold(cut, graph, weights, options, chip), weights, options, chip, schedule_.fired);
  schedule_.kind = cut.identity.kind;
  schedule_.sequences = cut.sequences();
  schedule_.rows_per_sequence = cut.rows_per_sequence();
  schedule_.states = step_.states;
  schedule_.state_stride = step_.state_stride;
}

Schedule Lowering::run() {
  add_buffers();
  for (const StepOp& op : step_.ops) {
    const Lower lower = lower_of(op);
    if (!lower) throw InternalError(fmt::format("plan: a {} was not folded away", op_name(op.kind)));
    for (const Ref& result : op.writes())
      if (result.kind == Ref::Kind::Array) counted(op, result.shape.elements());
    lower(*this, op);
  }
  add_advance();
  return std::move(schedule_);
}

void Lowering::add_buffers() {
  for (const StepArray& array : step_.arrays) {
    buffers_.push_back(-1);
    if (array.kind == StepArray::Kind::Logits) {
      schedule_.logit_rows = array.shape.rows;
      schedule_.vocabulary = array.shape.columns;
    }
    if (array.kind == StepArray::Kind::Buffer)
      buffers_.back() = scratch(array.name, array.shape.elements() * int64_t(sizeof(float)));
  }
}

/// The step moves on by itself: as it chooses, if it ends with that, or in a last launch.
void Lowering::add_advance() {
  const StepOp none;
  const Arg turns = IoArg{Io::Turns, Access::ReadWrite}, shown = IoArg{Io::Shown, Access::Write};
  Launch& last = schedule_.launches.back();
  if (last.kernel->name == "greatest") {
    last.args.resize(last.args.size() - 5);  // what a choice within a step leaves out
    last.args.insert(last.args.end(), {IoArg{Io::Tokens, Access::Write}, IoArg{Io::Positions, Access::ReadWrite},
                                       schedule_.rows_per_sequence, turns, shown});
    return;
  }
  const bool chooses = std::any_of(step_.arrays.begin(), step_.arrays.end(),
                                   [](const StepArray& a) { return a.kind == StepArray::Kind::Next; });
  launch(none, "advance", dim(ceil_div(sequences(), kElementThreads)), dim(kElementThreads),
         {IoArg{Io::Tokens, Access::Write}, IoArg{Io::Positions, Access::ReadWrite},
          chooses ? Arg(IoArg{Io::Next, Access::Read}) : NullArg{}, sequences(), schedule_.rows_per_sequence, turns,
          shown});
}

int Lowering::scratch(const std::string& name, int64_t bytes) {
  schedule_.buffers.push_back({name, uint64_t(bytes)});
  return int(schedule_.buffers.size()) - 1;
}

Arg Lowering::arg(const Ref& ref, Access access) const {
  switch (ref.kind) {
    case Ref::Kind::None:
      return NullArg{};
    case Ref::Kind::Weight:
      return WeightArg{ref.index};
    case Ref::Kind::State:
      return StateArg{ref.index, access};
    case Ref::Kind::Io:
      return IoArg{Io(ref.index), access};
    case Ref::Kind::Array:
      break;
  }
  const StepArray& array = step_.arrays[size_t(ref.index)];
  const uint64_t offset = uint64_t(ref.row * array.shape.columns + ref.column) * sizeof(float);
  if (array.kind == StepArray::Kind::Logits) return LogitsArg{offset};
  if (array.kind == StepArray::Kind::Next) return IoArg{Io::Next, access};
  return BufferArg{buffers_[size_t(ref.index)], offset, access};
}

Arg Lowering::in_or_null(const StepOp& op, size_t operand) const {
  return operand < op.operands.size() ? in(op.operands[operand]) : NullArg{};
}

Launch& Lowering::launch(const StepOp& op, std::string_view kernel_name, Dim3 grid, Dim3 block, std::vector<Arg> args) {
  constexpr uint32_t kMostBlocks = 65535;  // of a grid's second dimension: tokens, choices of experts, blocks of rows
  if (grid.y > kMostBlocks)
    refuse(op, "grid", fmt::format("{} blocks in a grid's second dimension, which has {}", grid.y, kMostBlocks));
  Launch launch;
  launch.kernel = &kernel(kernel_name);
  launch.grid = grid;
  launch.block = block;
  launch.args = std::move(args);
  launch.ops = op.ops;
  schedule_.launches.push_back(std::move(launch));
  return schedule_.launches.back();
}

Launch& Lowering::launch_elements(const StepOp& op, std::string_view kernel_name, int64_t count,
                                  std::vector<Arg> args) {
  return launch(op, kernel_name, dim(ceil_div(counted(op, count), kElementThreads)), dim(kElementThreads),
                std::move(args));
}

int64_t Lowering::counted(const StepOp& op, int64_t count) const {
  if (count > std::numeric_limits<int32_t>::max() - kElementThreads)
    refuse(op, "array", fmt::format("{} elements are more than a kernel counts", count));
  return count;
}

void Lowering::refuse(const StepOp& op, const std::string& kind, const std::string& why) const {
  const std::vector<Ref> written = op.writes();
  const Ref result = written.empty() ? Ref{} : written.front();
  std::string out;
  if (result.kind == Ref::Kind::State) out = step_.states[size_t(result.index)].name;
  if (result.kind == Ref::Kind::Array) out = step_.arrays[size_t(result.index)].name;
  throw NoKernelError(std::string(op_name(op.kind)), kind, out, why);
}

}  // namespace lane
