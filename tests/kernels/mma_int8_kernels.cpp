// The products on integer tensor cores of weights as stored, as chunks of the golden cases launch them.
#include "fused/grouped_mma_int8.cuh"
#include "kernels/registered.h"
#include "quant/all.cuh"

namespace lane::test {
namespace {

std::string arguments(std::initializer_list<std::string_view> names, int tokens) {
  std::string text = "<";
  for (const std::string_view name : names) text += std::string(name) + ", ";
  return text + "2, " + std::to_string(tokens) + ">";
}

template <class Q, int Tokens>
void add_tokens(Registry& registry, std::string_view q) {
  registry["mma_int8_product" + arguments({q}, Tokens)] = registered(program::mma_int8_product<Q, 2, Tokens>);
}
template <class Q, class G, int Tokens>
void add_gate(Registry& registry, std::string_view q, std::string_view g) {
  registry["mma_int8_gated_product" + arguments({q, q, g}, Tokens)] =
      registered(program::mma_int8_gated_product<Q, Q, G, 2, Tokens>);
}
template <class Q>
void add_format(Registry& registry, std::string_view q) {
  add_tokens<Q, 16>(registry, q);
  add_gate<Q, program::SiluGate, 16>(registry, q, "SiluGate");
}

/// Of experts that many tokens chose.
template <class Q, class G>
void add_experts(Registry& registry, std::string_view q, std::string_view g) {
  registry["grouped_mma_int8_product" + arguments({q}, 32)] = registered(program::grouped_mma_int8_product<Q, 2, 32>);
  registry["grouped_mma_int8_gated_product" + arguments({q, q, g}, 32)] =
      registered(program::grouped_mma_int8_gated_product<Q, Q, G, 2, 32>);
}

}  // namespace

void add_int8_tile_products(Registry& registry) {
  using program::SiluGate;
  add_format<program::IQ4_NL>(registry, "IQ4_NL");
  add_format<program::IQ4_XS>(registry, "IQ4_XS");
  add_format<program::MXFP4>(registry, "MXFP4");
  add_format<program::Q2_K>(registry, "Q2_K");
  add_format<program::Q3_K>(registry, "Q3_K");
  add_format<program::Q4_0>(registry, "Q4_0");
  add_format<program::Q4_1>(registry, "Q4_1");
  add_format<program::Q4_K>(registry, "Q4_K");
  add_format<program::Q5_0>(registry, "Q5_0");
  add_format<program::Q5_1>(registry, "Q5_1");
  add_format<program::Q5_K>(registry, "Q5_K");
  add_format<program::Q6_K>(registry, "Q6_K");
  add_format<program::Q8_0>(registry, "Q8_0");
  registry["mma_int8_head_product" + arguments({"Q8_0"}, 16)] =
      registered(program::mma_int8_head_product<program::Q8_0, 2, 16>);
  add_gate<program::Q4_K, program::GeluGate, 16>(registry, "Q4_K", "GeluGate");
  add_tokens<program::Q4_K, 32>(registry, "Q4_K");
  add_tokens<program::Q6_K, 32>(registry, "Q6_K");
  add_experts<program::Q4_K, SiluGate>(registry, "Q4_K", "SiluGate");
  add_experts<program::Q6_K, SiluGate>(registry, "Q6_K", "SiluGate");
}

}  // namespace lane::test
