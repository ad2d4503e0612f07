#include "7_plan/fused_parts.h"

#include "7_plan/activations.h"

namespace lane {

Matrix matrix_of(const Lowering& to, const StepOp& product) {
  const Ref& w = product.operands[0];
  return {to.weights().placements[size_t(w.index)].format,
          to.out(product.result),
          to.in(w),
          to.in(product.parts.bias),
          to.in(product.parts.residual),
          w.shape.rows};
}

void specialize(const Lowering& to, Launch& launch, std::initializer_list<const Format*> formats) {
  launch.template_arguments = {policy_name(activation_kind(to.options(), **formats.begin()))};
  for (const Format* format : formats) {
    launch.template_arguments.emplace_back(format->name);
    launch.includes.emplace_back(format->kernel);
  }
}

void prepare(const Lowering& to, Launch& launch, const Shape& x, bool normed,
             std::initializer_list<const Format*> formats) {
  const ActivationKind kind = activation_kind(to.options(), **formats.begin());
  if (normed || kind != ActivationKind::Floats) launch.shared_bytes = uint32_t(prepared_bytes(kind, x));
  specialize(to, launch, formats);
}

}  // namespace lane
