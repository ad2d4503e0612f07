#include "kernels/kernel_registry.h"

#include <stdexcept>

#include "fused/attention_inputs.cuh"
#include "fused/convolution.cuh"
#include "fused/experts.cuh"
#include "kernels/format_kernels.h"
#include "kernels/registered.h"
#include "ops/advance.cuh"
#include "ops/attention.cuh"
#include "ops/delta_chunk.cuh"
#include "ops/elementwise.cuh"
#include "ops/expert_groups.cuh"
#include "ops/experts.cuh"
#include "ops/greatest.cuh"
#include "ops/norm.cuh"
#include "ops/position.cuh"
#include "ops/quantize.cuh"
#include "ops/recurrent.cuh"
#include "ops/shape.cuh"

namespace lane::test {
namespace {

void add_quantized_products(Registry& registry, const std::string& suffix, const QuantizedProducts& products) {
  registry["matrix_product" + suffix] = registered(products.matrix);
  registry["head_product" + suffix] = registered(products.head);
  registry["expert_product" + suffix] = registered(products.expert);
}

void add_formats(Registry& registry) {
  for (const FormatKernels& format : format_kernels()) {
    const std::string suffix = "<" + std::string(format.name) + ">";
    registry["matrix_product" + suffix] = registered(format.matrix_product);
    registry["head_product" + suffix] = registered(format.head_product);
    registry["expert_product" + suffix] = registered(format.expert_product);
    registry["row_lookup" + suffix] = registered(format.row_lookup);
    if (format.int8.matrix) add_quantized_products(registry, "_int8" + suffix, format.int8);
    if (format.int8x2.matrix) add_quantized_products(registry, "_int8x2" + suffix, format.int8x2);
  }
}

template <class Cache>
void add_cache(Registry& registry, const std::string& name) {
  registry["cache_write<" + name + ">"] = registered(program::cache_write<Cache>);
  registry["attention_inputs<" + name + ">"] = registered(program::attention_inputs<Cache>);
  registry["attention<" + name + ">"] = registered(program::attention<Cache>);
}

void add_elementwise(Registry& registry) {
  registry["map<Scale>"] = registered(program::map<program::Scale>);
  registry["map<Silu>"] = registered(program::map<program::Silu>);
  registry["map<Gelu>"] = registered(program::map<program::Gelu>);
  registry["map<Sigmoid>"] = registered(program::map<program::Sigmoid>);
  registry["map<Softplus>"] = registered(program::map<program::Softplus>);
  registry["map<SquareRelu>"] = registered(program::map<program::SquareRelu>);
  registry["map<Softcap>"] = registered(program::map<program::Softcap>);
  registry["map<Clamp>"] = registered(program::map<program::Clamp>);
  registry["combine<Add>"] = registered(program::combine<program::Add>);
  registry["combine<Multiply>"] = registered(program::combine<program::Multiply>);
  registry["gate<SiluGate>"] = registered(program::gate<program::SiluGate>);
  registry["gate<GeluGate>"] = registered(program::gate<program::GeluGate>);
  registry["gate<SigmoidGate>"] = registered(program::gate<program::SigmoidGate>);
  registry["gate<ClampedGate>"] = registered(program::gate<program::ClampedGate>);
  registry["decay"] = registered(program::decay);
}

Registry make_registry() {
  Registry registry;
  add_formats(registry);
  add_cache<program::F32Cache>(registry, "F32Cache");
  add_cache<program::F16Cache>(registry, "F16Cache");
  add_cache<program::Q8Cache>(registry, "Q8Cache");
  add_elementwise(registry);
  registry["quantize<1>"] = registered(program::quantize<1>);
  registry["quantize<2>"] = registered(program::quantize<2>);
  registry["rms_norm"] = registered(program::rms_norm);
  registry["layer_norm"] = registered(program::layer_norm);
  registry["length_norm"] = registered(program::length_norm);
  registry["head_slice"] = registered(program::head_slice);
  registry["head_join"] = registered(program::head_join);
  registry["copy_rows"] = registered(program::copy_rows);
  registry["rotation"] = registered(program::rotation);
  registry["position_scale"] = registered(program::position_scale);
  registry["greatest_parts"] = registered(program::greatest_parts);
  registry["greatest"] = registered(program::greatest);
  registry["top_choice"] = registered(program::top_choice);
  registry["group_choices"] = registered(program::group_choices);
  registry["chosen_share"] = registered(program::chosen_share);
  registry["expert_bias"] = registered(program::expert_bias);
  registry["expert_sum"] = registered(program::expert_sum);
  registry["short_convolution"] = registered(program::short_convolution);
  registry["shift"] = registered(program::shift);
  registry["delta_rule"] = registered(program::delta_rule);
  registry["delta_factors"] = registered(program::delta_factors);
  registry["delta_chunk"] = registered(program::delta_chunk);
  registry["route"] = registered(program::route);
  registry["convolve<Silu>"] = registered(program::convolve<program::Silu>);
  registry["convolve<Identity>"] = registered(program::convolve<program::Identity>);
  registry["advance"] = registered(program::advance);
  add_attention_on_tensor_cores(registry);
  add_float_products_of_small_blocks(registry);
  add_float_products_of_super_blocks(registry);
  add_int8x2_products_of_small_blocks(registry);
  add_int8x2_products_of_super_blocks(registry);
  add_streamed_products(registry);
  add_chained_products(registry);
  add_tiled_products(registry);
  add_batched_products(registry);
  add_int8_tile_products(registry);
  return registry;
}

const Registry& registry() {
  static const Registry all = make_registry();
  return all;
}

}  // namespace

const RegisteredKernel& registered_kernel(const std::string& name) {
  const auto at = registry().find(name);
  if (at == registry().end()) throw std::out_of_range("tests have no kernel " + name);
  return at->second;
}

std::vector<std::string> registered_kernel_names() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : registry()) names.push_back(name);
  return names;
}

}  // namespace lane::test
