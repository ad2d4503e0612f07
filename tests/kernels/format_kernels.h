// Every weight format's kernels, a row each, for tests that try all of them alike.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace lane::test {

/// Products with quantized activations; null for formats of floats.
struct QuantizedProducts {
  void (*matrix)(float* out, const uint8_t* w, const uint8_t* x, int rows, int columns, int tokens) = nullptr;
  void (*head)(float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns, int tokens) = nullptr;
  void (*expert)(float* out, const uint8_t* w, const uint8_t* x, const int* chosen, int count, int rows, int columns,
                 int x_rows) = nullptr;
};

struct FormatKernels {
  std::string_view name;
  int elements, bytes;
  /// The row's weights, 32 of each group; a group a thread.
  void (*decode)(float* weights, const uint8_t* row, int groups);
  void (*matrix_product)(float* out, const uint8_t* w, const float* x, int rows, int columns, int tokens);
  void (*head_product)(float* out, const uint8_t* w, const float* x, int heads, int rows, int columns, int tokens);
  void (*expert_product)(float* out, const uint8_t* w, const float* x, const int* chosen, int count, int rows,
                         int columns, int x_rows);
  void (*row_lookup)(float* out, const uint8_t* w, const int* ids, int count, int columns);
  QuantizedProducts int8x2, int8;
};

/// All sixteen, in no order.
const std::vector<FormatKernels>& format_kernels();
const FormatKernels& format_kernels(std::string_view name);

}  // namespace lane::test
