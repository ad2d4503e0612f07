// Ops on carried state that is no cache.
#include "7_plan/lower_recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "7_plan/lower.h"
#include "ops/delta_chunk_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

constexpr int64_t kDeltaThreads = 128, kMostDeltaWidth = 256;  // the width as ops/recurrent.cuh says
constexpr int64_t kConvolutionThreads = 256, kConvolutionRun = 8;

}  // namespace

void lower_short_convolution(Lowering& to, const StepOp& op) {
  const Ref &ring = op.operands[0], &x = op.operands[1], &taps = op.operands[2];
  const int64_t count = x.shape.elements();
  to.launch_elements(op, "short_convolution", count,
                     {to.out(op.result), to.in(ring), to.in(x), to.in(taps), to.slots(), to.state_stride(), count,
                      x.shape.columns, taps.shape.columns, to.rows_per_sequence(x)});
}

void lower_shift(Lowering& to, const StepOp& op) {
  const Ref &ring = op.operands[0], &x = op.operands[1];
  const int64_t count = x.shape.columns * to.sequences();
  to.launch_elements(op, "shift", count,
                     {to.in_out(ring), to.in(x), to.slots(), to.state_stride(), count, x.shape.columns, ring.shape.rows,
                      to.rows_per_sequence(x)});
}

/// A reading, a rule, or both as one: the reading's operands then, and a result each.
void lower_delta(Lowering& to, const StepOp& op) {
  const bool reads = op.kind == OpKind::DeltaReading, keeps = op.fused == Fused::Delta || !reads;
  const size_t k = reads ? 2 : 1;
  const int64_t heads = op.integer(OptionKey::Heads), width = op.integer(OptionKey::Width);
  if (width > kMostDeltaWidth)
    to.refuse(op, "width", fmt::format("heads of {} values; the widest is {}", width, kMostDeltaWidth));
  const Ref& key = op.operands[k];
  const Ref& result = op.members.empty() ? op.result : op.members[0].result;
  to.launch(
      op, "delta_rule", dim(ceil_div(heads * width, kDeltaThreads / kWarpThreads), to.sequences()), dim(kDeltaThreads),
      {reads ? to.out(result) : Arg(NullArg{}), to.in_out(op.operands[0]),
       reads ? to.in(op.operands[1]) : Arg(NullArg{}), to.in(key), to.in(op.operands[k + 1]), to.in(op.operands[k + 2]),
       to.in(op.operands[k + 3]), to.slots(), to.state_stride(), to.rows_per_sequence(key), heads,
       op.integer(OptionKey::Groups), width, op.integer(OptionKey::Tiled), int64_t(keeps ? 1 : 0)});
}

void lower_convolution(Lowering& to, const StepOp& op) {
  const Ref &ring = op.operands[0], &x = op.operands[1], &taps = op.operands[2];
  const int64_t channels = x.shape.columns, count = to.counted(op, channels * to.sequences());
  const int64_t rows = to.rows_per_sequence(x), run = std::max(kConvolutionRun, taps.shape.columns - 1);
  to.launch(op, "convolve", dim(ceil_div(count, kConvolutionThreads), ceil_div(rows, run)), dim(kConvolutionThreads),
            {to.out(op.members[0].result), to.in_out(ring), to.in(x), to.in(taps), to.slots(), to.state_stride(), count,
             channels, taps.shape.columns, rows, run})
      .template_arguments = {op.kind == OpKind::Silu ? "Silu" : "Identity"};
}

bool fits_delta_chunk(const StepOp& delta, int64_t sequences, const Chip& chip) {
  const int64_t rows = delta.operands[2].shape.rows, width = delta.integer(OptionKey::Width);
  return sequences == 1 && rows > 1 && width <= kMostDeltaWidth && kernels::fits_delta_chunk(int(rows), int(width)) &&
         kernels::delta_chunk_shared_bytes(int(width)) <= size_t(chip.shared_bytes);
}

void lower_delta_chunk(Lowering& to, const StepOp& op) {
  const Ref &memory = op.operands[0], &q = op.operands[1], &k = op.operands[2], &v = op.operands[3],
            &decay = op.operands[4], &strength = op.operands[5];
  const int64_t heads = op.integer(OptionKey::Heads), groups = op.integer(OptionKey::Groups);
  const int64_t width = op.integer(OptionKey::Width), tiled = op.integer(OptionKey::Tiled);
  const int64_t rows = k.shape.rows, stretches = rows / kernels::kStretch;
  const int factors = to.scratch("delta.factors", stretches * heads * kernels::kDeltaFactors * int64_t(sizeof(float)));
  StepOp none;
  none.ops = op.ops;
  to.launch(none, "delta_factors", dim(heads, stretches), dim(kernels::kDeltaChunkThreads),
            {to.whole(factors, Access::Write), to.in(q), to.in(k), to.in(decay), to.in(strength), heads, groups, width,
             tiled})
      .shared_bytes = uint32_t(kernels::kDeltaFactorsSharedBytes);
  to.launch(op, "delta_chunk", dim(width / kernels::kDeltaValues, heads), dim(kernels::kDeltaChunkThreads),
            {to.out(op.members[0].result), to.in_out(memory), to.in(q), to.in(k), to.in(v),
             to.whole(factors, Access::Read), to.slots(), to.state_stride(), rows, heads, groups, width, tiled})
      .shared_bytes = uint32_t(kernels::delta_chunk_shared_bytes(int(width)));
}

}  // namespace lane
