// Products of repacked matrices: what the streamed kernels can take.
#pragma once
#include <vector>

#include "7_plan/activations.h"
#include "7_plan/lower.h"
#include "7_plan/rules.h"
#include "7_plan/step.h"

namespace lane {

/// Whether the product's matrix is repacked: then a streamed kernel computes it.
bool is_streamed(const Weights& weights, const StepOp& product);
/// Whether products of the tokens `x` are one launch for all of them: several tokens, quantized.
bool is_tiled(const Lowering& to, const std::vector<const StepOp*>& products, const Ref& x, bool gated);
/// The same of float weights, repacked or as stored: their activations are floats.
bool shares_floats(const Lowering& to, const std::vector<const StepOp*>& products, const Ref& x, bool gated);
/// Whether the kernels norm an input of so many columns themselves.
bool streams_norm(int64_t columns);
/// Whether the kernels make a sum of so many columns themselves, of a norm and what is added to it.
bool streams_post_norm(int64_t columns, bool gated);
/// Whether one launch computes the products, of one vector.
bool streams_together(const RuleContext& c, const std::vector<const StepOp*>& products);
/// Whether one launch computes both products and their gate.
bool streams_gate(const RuleContext& c, const StepOp& gate, const StepOp& up, const StepOp& of);
/// Whether a launch computes a product and, of its result, gate and up, or products (ops/chained_products.cuh): in a
/// step of one token.
bool chains(const RuleContext& c, const StepOp& product, const StepOp& next);

}  // namespace lane
