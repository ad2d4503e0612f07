// Rules of recurrent mixers.
#include <algorithm>
#include <array>

#include "7_plan/lower_recurrent.h"
#include "7_plan/rule_parts.h"

namespace lane {
namespace {

// convolution: the ring's shift, and the activation where there is one, with the convolution itself. Operands: the
// ring, the block's rows, the taps; members: what the rows become, the ring's shift.

StepOp convolution(const RuleContext& c, const StepOp& last) {
  StepOp fused = last;
  fused.fused = Fused::Convolution;
  fused.result = {};
  fused.operands = {c.value("ring"), c.value("x"), c.value("taps")};
  fused.members = {member(last), member(c.op("h"))};
  return fused;
}
bool always(const RuleContext&) { return true; }
StepOp convolution_with_silu(const RuleContext& c) { return convolution(c, c.op("a")); }
StepOp convolution_alone(const RuleContext& c) { return convolution(c, c.op("s")); }

// delta: the reading and the rule walk through the same states. Operands: the reading's; members: both.

StepOp delta(const RuleContext& c) {
  StepOp fused = c.op("o");
  fused.fused = Fused::Delta;
  fused.result = {};
  fused.members = {member(c.op("o")), member(c.op("m"))};
  return fused;
}

// delta chunk: the delta of a chunk's tokens, a stretch at a time.

bool chunks(const RuleContext& c) { return fits_delta_chunk(c.op("m"), c.op("m").sequences, c.chip); }
StepOp delta_chunk(const RuleContext& c) {
  StepOp fused = c.op("m");
  fused.fused = Fused::DeltaChunk;
  return fused;
}

constexpr std::array kRules = {
    Rule{"convolution", "a:silu(s:short convolution(ring, x, taps)); h:shift(ring, x)", always, convolution_with_silu,
         "convolve", "two launches, and an array written and read"},
    Rule{"convolution", "s:short convolution(ring, x, taps); h:shift(ring, x)", always, convolution_alone, "convolve",
         "a launch"},
    Rule{"delta", "o:delta reading(M, q, k, v, d, b); m:delta rule(M, k, v, d, b)", always, delta, "delta_rule",
         "a launch, and the memory read"},
    Rule{"delta chunk", "m:delta(M, q, k, v, d, b)", chunks, delta_chunk, "delta_chunk",
         "no launch: a chunk's tokens no longer wait for each other one by one"},
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace lane
