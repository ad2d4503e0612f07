#include "kernels/fused_kernels.h"

namespace lane::test {

void add_int8x2_products_of_small_blocks(Registry& registry) {
  add_fused<program::Int8x2, program::Q4_0>(registry, "Int8x2", "Q4_0");
  add_fused<program::Int8x2, program::Q4_1>(registry, "Int8x2", "Q4_1");
  add_fused<program::Int8x2, program::Q5_0>(registry, "Int8x2", "Q5_0");
  add_fused<program::Int8x2, program::Q5_1>(registry, "Int8x2", "Q5_1");
  add_fused<program::Int8x2, program::Q8_0>(registry, "Int8x2", "Q8_0");
  add_fused<program::Int8x2, program::IQ4_NL>(registry, "Int8x2", "IQ4_NL");
  add_chosen<program::Int8x2, program::Q8_0, program::SiluGate>(registry, "Int8x2", "Q8_0", "SiluGate");
  add_chosen<program::Int8x2, program::MXFP4, program::ClampedGate>(registry, "Int8x2", "MXFP4", "ClampedGate");
}

}  // namespace lane::test
