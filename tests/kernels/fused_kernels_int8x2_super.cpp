#include "kernels/fused_kernels.h"

namespace lane::test {

void add_int8x2_products_of_super_blocks(Registry& registry) {
  add_fused<program::Int8x2, program::Q2_K>(registry, "Int8x2", "Q2_K");
  add_fused<program::Int8x2, program::Q3_K>(registry, "Int8x2", "Q3_K");
  add_fused<program::Int8x2, program::Q4_K>(registry, "Int8x2", "Q4_K");
  add_fused<program::Int8x2, program::Q5_K>(registry, "Int8x2", "Q5_K");
  add_fused<program::Int8x2, program::Q6_K>(registry, "Int8x2", "Q6_K");
  add_fused<program::Int8x2, program::IQ4_XS>(registry, "Int8x2", "IQ4_XS");
  add_products<program::Int8x2, program::Q4_K, program::Q6_K>(registry, "Int8x2", "Q4_K", "Q6_K");
  add_gated<program::Int8x2, program::Q4_K, program::GeluGate>(registry, "Int8x2", "Q4_K", "GeluGate");
  add_chosen<program::Int8x2, program::Q4_K, program::SiluGate>(registry, "Int8x2", "Q4_K", "SiluGate");
  add_chosen<program::Int8x2, program::Q6_K, program::SiluGate>(registry, "Int8x2", "Q6_K", "SiluGate");
}

}  // namespace lane::test
