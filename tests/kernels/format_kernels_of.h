// One format's row of format_kernels(): its kernels' addresses.
#pragma once
#include "kernels/format_kernels.h"
#include "ops/matrix_product.cuh"
#include "ops/matrix_product_int8.cuh"
#include "ops/row_lookup.cuh"

namespace lane::test {

namespace program = LANE_NAMESPACE;

template <class Q>
__global__ void decode(float* weights, const uint8_t* row, int groups) {
  const int group = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (group >= groups) return;
  float values[32];
  program::decode_group<Q>(row, group, 32, values);
  for (int i = 0; i < 32; i++) weights[32 * group + i] = values[i];
}

template <class Q>
FormatKernels kernels_of(std::string_view name) {
  FormatKernels row{name,
                    Q::kElements,
                    Q::kBytes,
                    decode<Q>,
                    program::matrix_product<Q>,
                    program::head_product<Q>,
                    program::expert_product<Q>,
                    program::row_lookup<Q>,
                    {},
                    {}};
  if constexpr (Q::kElements > 1) {
    row.int8x2 = {program::matrix_product_int8x2<Q>, program::head_product_int8x2<Q>,
                  program::expert_product_int8x2<Q>};
    row.int8 = {program::matrix_product_int8<Q>, program::head_product_int8<Q>, program::expert_product_int8<Q>};
  }
  return row;
}

/// Formats with blocks of 1 or 32 weights, and with blocks of 256: two files, so that each compiles soon.
std::vector<FormatKernels> small_block_kernels();
std::vector<FormatKernels> super_block_kernels();

}  // namespace lane::test
