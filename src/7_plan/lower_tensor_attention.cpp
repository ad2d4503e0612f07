// Attention on tensor cores: split over the context, with what makes its inputs; and of chunks.
#include "7_plan/tensor_attention.h"

#include <algorithm>

#include "7_plan/lower.h"
#include "ops/attention_chunk_geometry.h"
#include "ops/attention_split_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

/// What the kernels take of shared memory besides, at most.
constexpr int kStaticSharedBytes = 1024;

/// An attention's heads, as the kernels are instantiated for them.
struct SplitHeads {
  int width, value_width, groups, per_group, each, parts;
};
SplitHeads split_heads(const StepOp& attention) {
  SplitHeads h{};
  h.width = int(attention.integer(OptionKey::Width));
  h.value_width = int(attention.integer(OptionKey::ValueWidth, h.width));
  h.groups = int(attention.integer(OptionKey::Groups));
  h.per_group = int(attention.integer(OptionKey::Heads)) / h.groups;
  h.each = kernels::attention_split_heads(h.per_group);
  h.parts = h.groups * h.per_group / h.each;
  return h;
}

/// The splits that the longest run of rows is worth.
int most_splits(int64_t context, int64_t window) {
  const int64_t rows = window > 0 ? std::min(window, context) : context;
  return int(ceil_div(rows, kernels::kSplitRows));
}

}  // namespace

bool fits_split_attention(const StepOp& attention, const Chip& chip) {
  const SplitHeads h = split_heads(attention);
  return attention.operands[0].shape.rows == attention.sequences &&
         kernels::attention_split_fits(h.width, h.value_width, h.each) &&
         kernels::attention_split_shared_bytes(h.width, h.value_width, h.each) + kStaticSharedBytes <=
             chip.shared_bytes;
}

bool fits_chunk_attention(const StepOp& attention, const Chip& chip) {
  const SplitHeads h = split_heads(attention);
  return attention.operands[0].shape.rows > attention.sequences &&
         kernels::attention_chunk_fits(h.width, h.value_width) &&
         kernels::attention_chunk_shared_bytes(h.width, h.value_width) + kStaticSharedBytes <= chip.shared_bytes;
}

void lower_split_attention(Lowering& to, const StepOp& op) {
  const StepOp& attention = op.members[0];
  const SplitHeads h = split_heads(attention);
  const int64_t window = attention.integer(OptionKey::Window), sequences = to.sequences();
  const auto in = [&](size_t operand) { return to.in(op.operands[operand]); };
  const Ref &keys = op.operands[8], &values = op.operands[9], &arrivals = op.operands[10];
  const auto g = kernels::attention_split_geometry(h.width, h.value_width, h.each, h.parts, int(sequences),
                                                   most_splits(keys.shape.rows, window), to.chip().multiprocessors,
                                                   to.chip().shared_bytes);
  const std::string& name = to.step().arrays[size_t(attention.result.index)].name;
  const int partial =
      to.scratch(name + ".splits", sequences * h.parts * int64_t(sizeof(float)) *
                                       kernels::attention_split_partial_floats(g.splits, h.each, h.value_width));
  Launch& launch = to.launch(op, "attention_split", dim(g.grid), dim(g.threads),
                             {to.out(attention.result),
                              to.in_out(keys),
                              to.in_out(values),
                              Lowering::whole(partial, Access::Write),
                              to.in_out(arrivals),
                              in(0),
                              in(1),
                              in(2),
                              in(3),
                              in(4),
                              op.option(OptionKey::Epsilon),
                              in(5),
                              op.integer(OptionKey::Turned),
                              op.integer(OptionKey::Paired),
                              in(7),
                              in(6),
                              to.slots(),
                              to.state_stride(),
                              sequences,
                              int64_t(h.groups),
                              int64_t(h.per_group),
                              int64_t(g.splits),
                              attention.option(OptionKey::Scale),
                              window,
                              attention.option(OptionKey::Limit)});
  launch.template_arguments = {std::to_string(h.width), std::to_string(h.value_width), std::to_string(h.each)};
  launch.shared_bytes = uint32_t(g.shared_bytes);
}

void lower_chunk_attention(Lowering& to, const StepOp& op) {
  const SplitHeads h = split_heads(op);
  const Ref &q = op.operands[0], &keys = op.operands[1], &values = op.operands[2], &pos = op.operands[3];
  const int64_t rows = to.rows_per_sequence(q);
  Launch& launch = to.launch(op, "attention_chunk",
                             dim(ceil_div(rows * h.per_group, kernels::kChunkQueries), h.groups * to.sequences()),
                             dim(kernels::kChunkWarps * kWarpThreads),
                             {to.out(op.result), to.in(q), to.in(keys), to.in(values), to.in(op.operands[4]),
                              to.in(pos), to.slots(), to.state_stride(), rows, int64_t(h.groups), int64_t(h.per_group),
                              op.option(OptionKey::Scale), op.integer(OptionKey::Window), op.option(OptionKey::Limit)});
  launch.template_arguments = {std::to_string(h.width), std::to_string(h.value_width)};
  launch.shared_bytes = uint32_t(kernels::attention_chunk_shared_bytes(h.width, h.value_width));
}

}  // namespace lane
