// What makes a RegisteredKernel of a kernel, and who adds to the registry: several files, so that each compiles soon.
#pragma once
#include <map>
#include <type_traits>
#include <utility>

#include "base/launch.cuh"
#include "kernels/device_array.h"
#include "kernels/kernel_registry.h"

namespace lane::test {

namespace program = LANE_NAMESPACE;
using Registry = std::map<std::string, RegisteredKernel>;

template <class P>
P value_as(const KernelValue& value) {
  if constexpr (std::is_pointer_v<P>)
    return static_cast<P>(value.pointer);
  else if constexpr (std::is_floating_point_v<P>)
    return static_cast<P>(value.real);
  else
    return static_cast<P>(value.integer);
}

template <class P>
std::string type_text() {
  if constexpr (std::is_pointer_v<P>) {
    using T = std::remove_pointer_t<P>;
    return (std::is_const_v<T> ? "const " : "") + type_text<std::remove_const_t<T>>() + "*";
  } else if constexpr (std::is_same_v<P, float>) {
    return "float";
  } else if constexpr (std::is_same_v<P, uint8_t>) {
    return "uint8_t";
  } else if constexpr (std::is_same_v<P, int>) {
    return "int";
  } else {
    static_assert(std::is_same_v<P, int64_t>, "kernels take flat parameters");
    return "int64_t";
  }
}

template <class... P, size_t... I>
void call(void (*kernel)(P...), const Dim3& grid, const Dim3& block, uint32_t shared_bytes, const KernelValue* values,
          std::index_sequence<I...>) {
  constexpr uint32_t kWithoutAsking = 48 * 1024;
  if (shared_bytes > kWithoutAsking)
    expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)));
  expect_success(program::launch(nullptr, dim3(grid.x, grid.y, grid.z), dim3(block.x, block.y, block.z), shared_bytes,
                                 kernel, value_as<P>(values[I])...));
}

template <class... P>
RegisteredKernel registered(void (*kernel)(P...)) {
  RegisteredKernel result;
  result.launch = [kernel](const Dim3& grid, const Dim3& block, uint32_t shared_bytes, const KernelValue* values) {
    call(kernel, grid, block, shared_bytes, values, std::index_sequence_for<P...>());
  };
  ((result.types += (result.types.empty() ? "" : ", ") + type_text<P>()), ...);
  return result;
}

/// ops/attention_split.cuh and ops/attention_chunk.cuh, for the heads of the golden cases.
void add_attention_on_tensor_cores(Registry& registry);
/// The fused products (fused/products.cuh), for formats with blocks of 1 or 32 weights and with blocks of 256.
void add_float_products_of_small_blocks(Registry& registry);
void add_float_products_of_super_blocks(Registry& registry);
void add_int8x2_products_of_small_blocks(Registry& registry);
void add_int8x2_products_of_super_blocks(Registry& registry);
void add_streamed_products(Registry& registry);
void add_chained_products(Registry& registry);
void add_tiled_products(Registry& registry);
void add_batched_products(Registry& registry);
void add_int8_tile_products(Registry& registry);

}  // namespace lane::test
