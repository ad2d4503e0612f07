#include "kernels/fused_kernels.h"

namespace lane::test {

void add_float_products_of_small_blocks(Registry& registry) {
  add_fused<program::Floats, program::F32>(registry, "Floats", "F32");
  add_fused<program::Floats, program::F16>(registry, "Floats", "F16");
  add_fused<program::Floats, program::BF16>(registry, "Floats", "BF16");
  add_fused<program::Floats, program::Q4_0>(registry, "Floats", "Q4_0");
  add_fused<program::Floats, program::Q4_1>(registry, "Floats", "Q4_1");
  add_fused<program::Floats, program::Q5_0>(registry, "Floats", "Q5_0");
  add_fused<program::Floats, program::Q5_1>(registry, "Floats", "Q5_1");
  add_fused<program::Floats, program::Q8_0>(registry, "Floats", "Q8_0");
  add_fused<program::Floats, program::IQ4_NL>(registry, "Floats", "IQ4_NL");
  add_gated<program::Floats, program::F32, program::GeluGate>(registry, "Floats", "F32", "GeluGate");
  add_chosen<program::Floats, program::F32, program::SiluGate>(registry, "Floats", "F32", "SiluGate");
  add_chosen<program::Floats, program::F32, program::ClampedGate>(registry, "Floats", "F32", "ClampedGate");
  add_chosen<program::Floats, program::Q8_0, program::SiluGate>(registry, "Floats", "Q8_0", "SiluGate");
  add_chosen<program::Floats, program::MXFP4, program::ClampedGate>(registry, "Floats", "MXFP4", "ClampedGate");
}

}  // namespace lane::test
