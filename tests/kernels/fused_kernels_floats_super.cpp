#include "kernels/fused_kernels.h"

namespace lane::test {

void add_float_products_of_super_blocks(Registry& registry) {
  add_fused<program::Floats, program::Q2_K>(registry, "Floats", "Q2_K");
  add_fused<program::Floats, program::Q3_K>(registry, "Floats", "Q3_K");
  add_fused<program::Floats, program::Q4_K>(registry, "Floats", "Q4_K");
  add_fused<program::Floats, program::Q5_K>(registry, "Floats", "Q5_K");
  add_fused<program::Floats, program::Q6_K>(registry, "Floats", "Q6_K");
  add_fused<program::Floats, program::IQ4_XS>(registry, "Floats", "IQ4_XS");
  add_products<program::Floats, program::Q4_K, program::Q6_K>(registry, "Floats", "Q4_K", "Q6_K");
  add_gated<program::Floats, program::Q4_K, program::GeluGate>(registry, "Floats", "Q4_K", "GeluGate");
  add_chosen<program::Floats, program::Q4_K, program::SiluGate>(registry, "Floats", "Q4_K", "SiluGate");
  add_chosen<program::Floats, program::Q6_K, program::SiluGate>(registry, "Floats", "Q6_K", "SiluGate");
}

}  // namespace lane::test
