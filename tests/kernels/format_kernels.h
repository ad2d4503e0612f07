// Every weight format's kernels on the host chip, a row each, for tests that try all of them alike.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace lane::test {

struct FormatKernels {
  std::string_view name;
  int elements, bytes;
  /// The 32 weights of a group of the row; `count` as decode_group says.
  void (*decode)(const uint8_t* row, int group, int count, float* weights);
  void (*matrix_product)(float* out, const uint8_t* w, const float* x, int rows, int columns, int tokens);
  void (*head_product)(float* out, const uint8_t* w, const float* x, int heads, int rows, int columns, int tokens);
  void (*expert_product)(float* out, const uint8_t* w, const float* x, const int* chosen, int count, int rows,
                         int columns, int x_rows);
  void (*row_lookup)(float* out, const uint8_t* w, const int* ids, int count, int columns);
};

/// All sixteen, in no order.
const std::vector<FormatKernels>& format_kernels();
const FormatKernels& format_kernels(std::string_view name);

}  // namespace lane::test
