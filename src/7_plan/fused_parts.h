// What the launches of fused products share.
#pragma once
#include <initializer_list>

#include "7_plan/lower.h"

namespace lane {

constexpr int64_t kProductThreads = 256;  // as ops/product_rows.cuh says

/// A product's matrix, bias and the rest, as kernels take them.
struct Matrix {
  const Format* format;
  Arg out, weights, bias, residual;
  int64_t rows;
};
Matrix matrix_of(const Lowering& to, const StepOp& product);

/// How the activations enter, and the formats: the kernel's template arguments.
void specialize(const Lowering& to, Launch& launch, std::initializer_list<const Format*> formats);
/// The same, and the launch's shared memory for activations that its blocks norm or quantize.
void prepare(const Lowering& to, Launch& launch, const Shape& x, bool normed,
             std::initializer_list<const Format*> formats);

}  // namespace lane
