// One format's fused products.
#pragma once
#include "fused/experts.cuh"
#include "fused/grouped_experts.cuh"
#include "fused/products.cuh"
#include "kernels/registered.h"
#include "quant/all.cuh"

namespace lane::test {

template <class A, class Q0, class Q2>
void add_products(Registry& registry, const std::string& a, const std::string& q0, const std::string& q2) {
  registry["products<" + a + ", " + q0 + ", " + q0 + ", " + q2 + ">"] = registered(program::products<A, Q0, Q0, Q2>);
}

template <class A, class Q, class G>
void add_gated(Registry& registry, const std::string& a, const std::string& q, const std::string& g) {
  registry["gated_product<" + a + ", " + q + ", " + q + ", " + g + ">"] =
      registered(program::gated_product<A, Q, Q, G>);
}

/// Products of chosen experts, alone and gated, a choice or a group at a time.
template <class A, class Q, class G>
void add_chosen(Registry& registry, const std::string& a, const std::string& q, const std::string& g) {
  registry["chosen_product<" + a + ", " + q + ">"] = registered(program::chosen_product<A, Q>);
  registry["chosen_gated_product<" + a + ", " + q + ", " + q + ", " + g + ">"] =
      registered(program::chosen_gated_product<A, Q, Q, G>);
  registry["grouped_product<" + a + ", " + q + ">"] = registered(program::grouped_product<A, Q>);
  registry["grouped_gated_product<" + a + ", " + q + ", " + q + ", " + g + ">"] =
      registered(program::grouped_gated_product<A, Q, Q, G>);
}

template <class A, class Q>
void add_fused(Registry& registry, const std::string& a, const std::string& q) {
  registry["product<" + a + ", " + q + ">"] = registered(program::product<A, Q>);
  add_products<A, Q, Q>(registry, a, q, q);
  add_gated<A, Q, program::SiluGate>(registry, a, q, "SiluGate");
}

}  // namespace lane::test
