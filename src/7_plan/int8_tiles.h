// Products of quantized weights as stored on integer tensor cores, for more tokens than the multi-row products take
// (ops/mma_int8_tile.cuh). They have those products' bits, so chunks and batches take them alike.
#pragma once
#include "7_plan/lower.h"

namespace lane {

/// Whether such a kernel computes the product of so many tokens. The host chip's portable bodies are the multi-row
/// products.
bool on_int8_tiles(const Weights& weights, const Options& options, const Chip& chip, const StepOp& product,
                   int64_t tokens);
inline bool on_int8_tiles(const Lowering& to, const StepOp& product, int64_t tokens) {
  return on_int8_tiles(to.weights(), to.options(), to.chip(), product, tokens);
}

void lower_int8_product(Lowering& to, const StepOp& op);
void lower_int8_head_product(Lowering& to, const StepOp& op);
void lower_int8_gated_product(Lowering& to, const StepOp& op);

/// An expert's choices by groups: what lower_experts.cpp knows of them.
struct ChoiceGroups {
  Arg order, expert, first;
  int64_t choices, most;
};
/// Whether they pay for chosen experts: many choices an expert. With 32 on average they took 9% longer on one H200 than
/// the portable grouped products, with 64 two thirds of their time (docs/performance.md).
bool on_int8_tiles(const Lowering& to, const StepOp& product, const ChoiceGroups& groups);
void lower_grouped_int8_product(Lowering& to, const StepOp& op, const ChoiceGroups& groups);
void lower_grouped_int8_gate(Lowering& to, const StepOp& op, const ChoiceGroups& groups);

}  // namespace lane
