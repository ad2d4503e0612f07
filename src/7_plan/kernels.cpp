#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lane/error.h"
#include "lane/plan.h"

namespace lane {
namespace {

// Name, file, parameters as the file declares them; `tests/kernels` compiles each row against its file.
constexpr std::array kKernels = {
    Kernel{.name = "row_lookup",
           .file = "ops/row_lookup.cuh",
           .parameters = "float* out, const uint8_t* w, const int* ids, int count, int columns",
           .gathers = true},
    Kernel{"matrix_product", "ops/matrix_product.cuh",
           "float* out, const uint8_t* w, const float* x, int rows, int columns, int tokens"},
    Kernel{"head_product", "ops/matrix_product.cuh",
           "float* out, const uint8_t* w, const float* x, int heads, int rows, int columns, int tokens"},
    Kernel{"expert_product", "ops/matrix_product.cuh",
           "float* out, const uint8_t* w, const float* x, const int* chosen, int count, int rows, int columns, int "
           "x_rows"},
    Kernel{"matrix_product_int8x2", "ops/matrix_product_int8.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, int rows, int columns, int tokens"},
    Kernel{"matrix_product_int8", "ops/matrix_product_int8.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, int rows, int columns, int tokens"},
    Kernel{"head_product_int8x2", "ops/matrix_product_int8.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns, int tokens"},
    Kernel{"head_product_int8", "ops/matrix_product_int8.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns, int tokens"},
    Kernel{"expert_product_int8x2", "ops/matrix_product_int8.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, const int* chosen, int count, int rows, int columns, int "
           "x_rows"},
    Kernel{"expert_product_int8", "ops/matrix_product_int8.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, const int* chosen, int count, int rows, int columns, int "
           "x_rows"},
    Kernel{"quantize", "ops/quantize.cuh", "uint8_t* out, const float* x, int rows, int columns"},
    Kernel{"streamed_product", "ops/streamed_product.cuh",
           "float* out, const uint8_t* weights, const float* x, const float* norm, float epsilon, const float* bias, "
           "const float* residual, int rows, int rows_per_block, int ring"},
    Kernel{"streamed_choice", "ops/streamed_product.cuh",
           "float* out, float* best_values, int* best_rows, const uint8_t* weights, const float* x, const float* norm, "
           "float epsilon, const float* bias, int rows, int rows_per_block, int ring"},
    Kernel{"streamed_products", "ops/streamed_product.cuh",
           "float* out0, float* out1, float* out2, const uint8_t* weights0, const uint8_t* weights1, const uint8_t* "
           "weights2, const float* x, const float* norm, float epsilon, const float* bias0, const float* bias1, const "
           "float* bias2, int rows0, int rows1, int rows2, int blocks0, int blocks1, int blocks2, int "
           "rows_per_block0, int rows_per_block1, int rows_per_block2, int ring0, int ring1, int ring2"},
    Kernel{"streamed_gated_product", "ops/streamed_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const float* x, const float* norm, float epsilon, int "
           "gelu, int rows, int rows_per_block, int ring"},
    Kernel{"chained_gated_product", "ops/chained_products.cuh",
           "float* out, float* y, float* link, float* armed, const uint8_t* weights, const float* x, const float* "
           "bias, const float* residual, int y_blocks, int y_rows_per_block, int y_ring, const uint8_t* gate, const "
           "uint8_t* up, const float* norm, float epsilon, int gelu, int rows, int rows_per_block, int ring"},
    Kernel{"chained_post_normed_gated_product", "ops/chained_products.cuh",
           "float* out, float* sum, float* y, float* link, float* armed, const uint8_t* weights, const float* x, const "
           "float* bias, int y_blocks, int y_rows_per_block, int y_ring, const uint8_t* gate, const uint8_t* up, const "
           "float* post, const float* carried, float post_epsilon, const float* norm, float epsilon, int gelu, int "
           "rows, int rows_per_block, int ring"},
    Kernel{"chained_products", "ops/chained_products.cuh",
           "float* out0, float* out1, float* out2, float* y, float* link, float* armed, const uint8_t* weights, const "
           "float* x, const float* bias, const float* residual, int y_blocks, int y_rows_per_block, int y_ring, const "
           "uint8_t* weights0, const uint8_t* weights1, const uint8_t* weights2, const float* norm, float epsilon, "
           "const float* bias0, const float* bias1, const float* bias2, int rows0, int rows1, int rows2, int blocks0, "
           "int blocks1, int blocks2, int rows_per_block0, int rows_per_block1, int rows_per_block2, int ring0, int "
           "ring1, int ring2"},
    Kernel{
        "post_normed_products", "ops/post_normed_products.cuh",
        "float* out0, float* out1, float* out2, float* sum, const uint8_t* weights0, const uint8_t* weights1, const "
        "uint8_t* weights2, const float* x, const float* post, const float* carried, float post_epsilon, const float* "
        "norm, float epsilon, const float* bias0, const float* bias1, const float* bias2, int rows0, int rows1, int "
        "rows2, int blocks0, int blocks1, int blocks2, int rows_per_block0, int rows_per_block1, int "
        "rows_per_block2, int ring0, int ring1, int ring2"},
    Kernel{"post_normed_gated_product", "ops/post_normed_products.cuh",
           "float* out, float* sum, const uint8_t* gate, const uint8_t* up, const float* x, const float* post, const "
           "float* carried, float post_epsilon, const float* norm, float epsilon, int gelu, int rows, int "
           "rows_per_block, int ring"},
    Kernel{
        "post_normed_choice", "ops/post_normed_products.cuh",
        "float* out, float* best_values, int* best_rows, float* sum, const uint8_t* weights, const float* x, const "
        "float* post, const float* carried, float post_epsilon, const float* norm, float epsilon, const float* bias, "
        "int rows, int rows_per_block, int ring"},
    Kernel{"quantize_vectors", "ops/quantize_vectors.cuh",
           "uint8_t* out, const float* x, const float* norm, float epsilon, int tokens"},
    Kernel{"tiled_product", "ops/tiled_product.cuh",
           "float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows, "
           "int tokens, int ring, float* partial, int* arrived"},
    Kernel{"tiled_products", "ops/tiled_product.cuh",
           "float* out0, float* out1, float* out2, const uint8_t* weights0, const uint8_t* weights1, const uint8_t* "
           "weights2, const uint8_t* x0, const uint8_t* x1, const uint8_t* x2, const float* bias0, const float* bias1, "
           "const float* bias2, int rows0, int rows1, int rows2, int blocks0, int blocks1, int blocks2, int ring0, int "
           "ring1, int ring2, int tokens, float* partial0, float* partial1, float* partial2, int* arrived"},
    Kernel{"tiled_gated_product", "ops/tiled_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens, int "
           "ring"},
    Kernel{"mma_int8_product", "ops/mma_int8_product.cuh",
           "float* out, const uint8_t* w, const float* bias, const float* residual, const uint8_t* x, int rows, int "
           "columns, int tokens"},
    Kernel{"mma_int8_gated_product", "ops/mma_int8_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, float limit, float slope, int rows, "
           "int columns, int tokens"},
    Kernel{"half_vectors", "ops/half_vectors.cuh",
           "uint8_t* out, const float* x, const float* norm, float epsilon, int tokens"},
    Kernel{"chunk_product", "ops/chunk_product.cuh",
           "float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows, "
           "int tokens"},
    Kernel{"chunk_part_product", "ops/chunk_product.cuh",
           "float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows, "
           "int tokens, float* partial, int* arrived"},
    Kernel{"chunk_products", "ops/chunk_product.cuh",
           "float* out0, float* out1, float* out2, const uint8_t* weights0, const uint8_t* weights1, const uint8_t* "
           "weights2, const uint8_t* x, const float* bias0, const float* bias1, const float* bias2, int rows0, int "
           "rows1, int rows2, int tokens"},
    Kernel{"chunk_gated_product", "ops/chunk_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens"},
    Kernel{"float_vectors", "ops/float_vectors.cuh",
           "uint8_t* out, const float* x, const float* norm, float epsilon, int tokens"},
    Kernel{"batched_product", "ops/batched_product.cuh",
           "float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows, "
           "int tokens, int ring"},
    Kernel{"batched_gated_product", "ops/batched_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens, int "
           "ring"},
    Kernel{"split_vectors", "ops/split_vectors.cuh",
           "uint8_t* out, const float* x, const float* norm, float epsilon, int tokens"},
    Kernel{"mma_product", "ops/mma_product.cuh",
           "float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows, "
           "int tokens"},
    Kernel{"mma_gated_product", "ops/mma_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens"},
    Kernel{"wide_product", "ops/wide_product.cuh",
           "float* out, const uint8_t* weights, const uint8_t* x, const float* bias, const float* residual, int rows, "
           "int tokens"},
    Kernel{"wide_gated_product", "ops/wide_product.cuh",
           "float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, int gelu, int rows, int tokens"},
    Kernel{.name = "repacked_row_lookup",
           .file = "layout/row_lookup.cuh",
           .parameters = "float* out, const uint8_t* w, const int* ids, int count, int columns, int rows",
           .gathers = true},
    Kernel{"rms_norm", "ops/norm.cuh",
           "float* out, const float* x, const float* weight, const float* bias, const float* residual, int width, int "
           "weight_columns, float epsilon"},
    Kernel{"layer_norm", "ops/norm.cuh",
           "float* out, const float* x, const float* weight, const float* bias, int width, int weight_columns, float "
           "epsilon"},
    Kernel{"length_norm", "ops/norm.cuh", "float* out, const float* x, int width, float epsilon"},
    Kernel{"map", "ops/elementwise.cuh", "float* out, const float* x, int count, float parameter"},
    Kernel{"combine", "ops/elementwise.cuh",
           "float* out, const float* x, const float* y, int count, int columns, int y_row, int y_column"},
    Kernel{"gate", "ops/elementwise.cuh",
           "float* out, const float* g, const float* u, int count, float limit, float slope"},
    Kernel{"decay", "ops/elementwise.cuh",
           "float* out, const float* a, const float* dt, const float* rate, int count, int heads"},
    Kernel{"head_slice", "ops/shape.cuh", "float* out, const float* x, int count, int width, int first, int kept"},
    Kernel{"head_join", "ops/shape.cuh",
           "float* out, const float* x, const float* y, int count, int x_width, int y_width, int heads, int y_repeats"},
    Kernel{"copy_rows", "ops/shape.cuh", "float* out, const float* x, int count"},
    Kernel{"rotation", "ops/position.cuh",
           "float* out, const float* x, const float* table, const int* pos, int count, int columns, int "
           "rows_per_sequence, int width, int turned, int neighbours"},
    Kernel{"position_scale", "ops/position.cuh",
           "float* out, const float* x, const int* pos, int count, int columns, int rows_per_sequence, float factor, "
           "int length"},
    Kernel{"cache_write", "ops/cache.cuh",
           "uint8_t* state, const float* x, const int* pos, const int* slots, int64_t state_stride, int count, int "
           "columns, int rows_per_sequence"},
    Kernel{"attention", "ops/attention.cuh",
           "float* out, const float* q, const uint8_t* keys, const uint8_t* values, const float* sinks, const int* "
           "pos, const int* slots, int64_t state_stride, int rows_per_sequence, int heads, int groups, int width, int "
           "value_width, float scale, int window, float limit"},
    Kernel{"attention_chunk", "ops/attention_chunk.cuh",
           "float* out, const float* q, const uint8_t* keys, const uint8_t* values, const float* sinks, const int* "
           "pos, const int* slots, int64_t state_stride, int rows, int groups, int heads_per_group, float scale, int "
           "window, float limit"},
    Kernel{"attention_split", "ops/attention_split.cuh",
           "float* out, uint8_t* keys, uint8_t* values, float* partial, int* arrived, const float* q, const float* k, "
           "const float* v, const float* q_norm, const float* k_norm, float epsilon, const float* rotary, int turned, "
           "int neighbours, const float* sinks, const int* pos, const int* slots, int64_t state_stride, int sequences, "
           "int groups, int heads_per_group, int splits, float scale, int window, float limit"},
    Kernel{"greatest_parts", "ops/greatest.cuh", "float* values, int* indices, const float* x, int columns"},
    Kernel{"greatest", "ops/greatest.cuh",
           "int* next, const float* values, const int* indices, int parts, int* tokens, int* pos, int "
           "rows_per_sequence, int* "
           "turns, int* shown"},
    Kernel{"top_choice", "ops/experts.cuh",
           "int* ids, const float* r, const float* bias, int experts, int count, int groups, int kept, int by"},
    Kernel{
        "chosen_share", "ops/experts.cuh",
        "float* share, const float* r, const int* ids, int experts, int count, int by, int normalised, float factor"},
    Kernel{"expert_bias", "ops/experts.cuh",
           "float* out, const float* y, const float* bias, const int* ids, int total, int columns"},
    Kernel{"expert_sum", "ops/experts.cuh",
           "float* out, const float* d, const float* share, const float* residual, int total, int count, int columns"},
    Kernel{"short_convolution", "ops/recurrent.cuh",
           "float* out, const uint8_t* state, const float* x, const float* w, const int* slots, int64_t state_stride, "
           "int count, int channels, int taps, int rows_per_sequence"},
    Kernel{"shift", "ops/recurrent.cuh",
           "uint8_t* state, const float* x, const int* slots, int64_t state_stride, int count, int channels, int held, "
           "int rows_per_sequence"},
    Kernel{
        "delta_rule", "ops/recurrent.cuh",
        "float* out, uint8_t* state, const float* q, const float* k, const float* v, const float* d, const float* b, "
        "const int* slots, int64_t state_stride, int rows_per_sequence, int heads, int groups, int width, int tiled, "
        "int keep"},
    Kernel{"delta_factors", "ops/delta_chunk.cuh",
           "float* factors, const float* q, const float* k, const float* d, const float* b, int heads, int groups, int "
           "width, int tiled"},
    Kernel{"delta_chunk", "ops/delta_chunk.cuh",
           "float* out, uint8_t* state, const float* q, const float* k, const float* v, const float* factors, const "
           "int* slots, int64_t state_stride, int rows, int heads, int groups, int width, int tiled"},
    Kernel{"product", "fused/products.cuh",
           "float* out, const uint8_t* w, const float* bias, const float* residual, const float* x, const float* norm, "
           "float epsilon, int rows, int columns, int tokens"},
    Kernel{"products", "fused/products.cuh",
           "float* out0, float* out1, float* out2, const uint8_t* w0, const uint8_t* w1, const uint8_t* w2, const "
           "float* bias0, const float* bias1, const float* bias2, const float* x, const float* norm, float epsilon, "
           "int rows0, int rows1, int rows2, int blocks0, int blocks1, int columns, int tokens"},
    Kernel{"gated_product", "fused/products.cuh",
           "float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* x, const float* norm, "
           "float epsilon, float limit, float slope, int rows, int columns, int tokens"},
    Kernel{"attention_inputs", "fused/attention_inputs.cuh",
           "float* q_out, uint8_t* keys, uint8_t* values, const float* q, const float* k, const float* v, const float* "
           "q_norm, const float* k_norm, const float* table, const int* pos, const int* slots, int64_t state_stride, "
           "int rows_per_sequence, int heads, int groups, int width, int value_width, int turned, int neighbours, "
           "float epsilon"},
    Kernel{"route", "fused/experts.cuh",
           "int* ids, float* share, const float* r, const float* bias, const float* scores, int experts, int count, "
           "int groups, int kept, int choose_by, int by, int normalised, float factor"},
    Kernel{"chosen_product", "fused/experts.cuh",
           "float* out, const uint8_t* w, const float* bias, const float* x, const int* chosen, int count, int rows, "
           "int columns, int x_rows"},
    Kernel{"chosen_gated_product", "fused/experts.cuh",
           "float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* gate_bias, const float* "
           "up_bias, const float* x, const int* chosen, float limit, float slope, int count, int rows, int columns, "
           "int x_rows"},
    Kernel{"group_choices", "ops/expert_groups.cuh",
           "int* order, int* expert, int* first, const int* ids, int choices, int experts, int groups"},
    Kernel{"grouped_product", "fused/grouped_experts.cuh",
           "float* out, const uint8_t* w, const float* bias, const uint8_t* x, const int* order, const int* expert, "
           "const int* first, int choices, int rows, int columns, int words, int x_rows, int part"},
    Kernel{
        "grouped_gated_product", "fused/grouped_experts.cuh",
        "float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* gate_bias, const float* "
        "up_bias, const uint8_t* x, const int* order, const int* expert, const int* first, float limit, float slope, "
        "int choices, int rows, int columns, int words, int x_rows, int part"},
    Kernel{"mma_int8_head_product", "ops/mma_int8_product.cuh",
           "float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns, int tokens"},
    Kernel{"grouped_mma_int8_product", "fused/grouped_mma_int8.cuh",
           "float* out, const uint8_t* w, const float* bias, const uint8_t* x, const int* order, const int* expert, "
           "const int* first, int choices, int rows, int columns, int x_rows"},
    Kernel{"grouped_mma_int8_gated_product", "fused/grouped_mma_int8.cuh",
           "float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* gate_bias, const float* "
           "up_bias, const uint8_t* x, const int* order, const int* expert, const int* first, float limit, float "
           "slope, int choices, int rows, int columns, int x_rows"},
    Kernel{"convolve", "fused/convolution.cuh",
           "float* out, uint8_t* state, const float* x, const float* w, const int* slots, int64_t state_stride, int "
           "count, int channels, int taps, int rows_per_sequence, int run"},
    Kernel{"advance", "ops/advance.cuh",
           "int* tokens, int* pos, const int* next, int sequences, int rows_per_sequence, int* turns, int* shown"},
};

}  // namespace

std::span<const Kernel> kernels() { return kKernels; }

const Kernel& kernel(std::string_view name) {
  const auto at = std::find_if(kKernels.begin(), kKernels.end(), [&](const Kernel& k) { return k.name == name; });
  if (at == kKernels.end()) throw InternalError(fmt::format("plan: no kernel '{}'", name));
  return *at;
}

}  // namespace lane
