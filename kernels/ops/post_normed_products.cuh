// Streamed products of a sum that a norm makes, for one token: y = x / sqrt(mean(x^2) + post_epsilon) * post + carried
// is what the layer goes on with, and the products read it normed.
//
//   post_normed_products, post_normed_gated_product, post_normed_choice: of y what streamed_products,
//   streamed_gated_product and streamed_choice (ops/streamed_product.cuh) are of x; `sum` is where y goes.
//
// Every block makes y, which takes one more reduction over a block instead of a launch; the last block writes it. To
// the bit, it is what rms_norm (ops/norm.cuh) gives.
#pragma once
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

template <class L0, class L1, class L2, int Columns, int Words>
__global__
__launch_bounds__(streamed_threads(Columns, false), streamed_residents(Columns, false)) void post_normed_products(
    float* out0, float* out1, float* out2, float* sum, const uint8_t* weights0, const uint8_t* weights1,
    const uint8_t* weights2, const float* x, const float* post, const float* carried, float post_epsilon,
    const float* norm, float epsilon, const float* bias0, const float* bias1, const float* bias2, int rows0, int rows1,
    int rows2, int blocks0, int blocks1, int blocks2, int rows_per_block0, int rows_per_block1, int rows_per_block2,
    int ring0, int ring1, int ring2) {
  admit_consumer();
  const PartTask part = part_task({out0, weights0, bias0, rows0, blocks0, rows_per_block0, ring0},
                                  {out1, weights1, bias1, rows1, blocks1, rows_per_block1, ring1},
                                  {out2, weights2, bias2, rows2, blocks2, rows_per_block2, ring2});
  streamed_block<StreamedShape<Columns, Words, 1, L0, L1, L2>>(
      part.task, PostNormedInput{x, norm, epsilon, post, carried, sum, post_epsilon}, part.result);
}

template <class L, int Columns, int Words>
__global__ __launch_bounds__(
    streamed_threads(Columns, true),
    streamed_residents(Columns, true)) void post_normed_gated_product(float* out, float* sum, const uint8_t* gate,
                                                                      const uint8_t* up, const float* x,
                                                                      const float* post, const float* carried,
                                                                      float post_epsilon, const float* norm,
                                                                      float epsilon, int gelu, int rows,
                                                                      int rows_per_block, int ring) {
  admit_consumer();
  const StreamedTask task = streamed_task(gate, up, 0, rows, rows_per_block, ring, blockIdx.x, gridDim.x);
  streamed_block<StreamedShape<Columns, Words, 2, L>>(
      task, PostNormedInput{x, norm, epsilon, post, carried, sum, post_epsilon},
      StreamedResult{out, nullptr, nullptr, gelu});
}

template <class L, int Columns, int Words>
__global__ __launch_bounds__(
    streamed_threads(Columns, false),
    streamed_residents(Columns, false)) void post_normed_choice(float* out, float* best_values, int* best_rows,
                                                                float* sum, const uint8_t* weights, const float* x,
                                                                const float* post, const float* carried,
                                                                float post_epsilon, const float* norm, float epsilon,
                                                                const float* bias, int rows, int rows_per_block,
                                                                int ring) {
  admit_consumer();
  choose_among_rows<L, Columns, Words>(out, best_values, best_rows, weights,
                                       PostNormedInput{x, norm, epsilon, post, carried, sum, post_epsilon}, bias, rows,
                                       rows_per_block, ring);
}

}  // namespace LANE_NAMESPACE
