// A product and the products of its result in one launch (sm_90 and up), for one token: the output projection with gate
// and up, the down projection with the next layer's q, k and v.
//
//   chained_gated_product<First, Columns, Words, L, NextColumns, NextWords>
//       y = W x + bias + residual; out = a(gate n(y)) * (up n(y))
//   chained_post_normed_gated_product<First, Columns, Words, L, NextColumns, NextWords>
//       y = W x + bias; sum = y / sqrt(mean(y^2) + post_epsilon) * post + carried; out = a(gate n(sum)) * (up n(sum))
//   chained_products<First, Columns, Words, L0, L1, L2, NextColumns, NextWords>
//       y = W x + bias + residual; out_i = W_i n(y) + bias_i
//
// What they compute, to the bit, is streamed_product of x followed by streamed_gated_product, post_normed_gated_product
// (ops/post_normed_products.cuh) or streamed_products of y (ops/streamed_product.cuh). The grid's first y_blocks blocks
// make y [NextColumns] as that kernel's do and publish it in `link` (base/published.cuh), the others read it there.
// `armed` is the link of the chained launch before this one, which all have read: it becomes +0. Geometry:
// streamed_geometry's, of either stage.
//
// Beside a launch it saves the edge: a block of the second stage goes on when the last value that it waits for is
// stored, not when the last block of the first stage has ended and its stores are flushed.
#pragma once
#include "base/published.cuh"
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

struct ChainedLink {
  float *link, *armed;
};

/// A block of the first stage's `blocks`: its rows of y, stored and published.
template <class S>
__device__ __forceinline__ void make_published(const uint8_t* weights, int rows, int blocks, int rows_per_block,
                                               int ring, const float* x, const StreamedResult& y,
                                               const ChainedLink& link) {
  const StreamedTask task =
      streamed_task(weights, nullptr, 0, rows, rows_per_block, ring, static_cast<int>(blockIdx.x), blocks);
  streamed_block<S>(task, StreamedInput{x, nullptr, 0.f}, y, [&](float v, int row) {
    publish(link.link + row, v);
    link.armed[row] = 0.f;
  });
}

template <class First, int Columns, int Words, class L, int NextColumns, int NextWords>
__global__ __launch_bounds__(
    streamed_threads(Columns, false),
    streamed_residents(Columns, false)) void chained_gated_product(float* out, float* y, float* link, float* armed,
                                                                   const uint8_t* weights, const float* x,
                                                                   const float* bias, const float* residual,
                                                                   int y_blocks, int y_rows_per_block, int y_ring,
                                                                   const uint8_t* gate, const uint8_t* up,
                                                                   const float* norm, float epsilon, int gelu, int rows,
                                                                   int rows_per_block, int ring) {
  static_assert(streamed_threads(Columns, false) == streamed_threads(NextColumns, true), "blocks of one size");
  admit_consumer();
  const int next = static_cast<int>(blockIdx.x) - y_blocks;
  if (next < 0)
    return make_published<StreamedShape<Columns, Words, 1, First>>(weights, NextColumns, y_blocks, y_rows_per_block,
                                                                   y_ring, x, {y, bias, residual, 0}, {link, armed});
  streamed_block<StreamedShape<NextColumns, NextWords, 2, L>>(
      streamed_task(gate, up, 0, rows, rows_per_block, ring, next, static_cast<int>(gridDim.x) - y_blocks),
      PublishedInput{{link, norm, epsilon}}, StreamedResult{out, nullptr, nullptr, gelu});
}

template <class First, int Columns, int Words, class L, int NextColumns, int NextWords>
__global__ __launch_bounds__(
    streamed_threads(Columns, false),
    streamed_residents(Columns, false)) void chained_post_normed_gated_product(float* out, float* sum, float* y,
                                                                               float* link, float* armed,
                                                                               const uint8_t* weights, const float* x,
                                                                               const float* bias, int y_blocks,
                                                                               int y_rows_per_block, int y_ring,
                                                                               const uint8_t* gate, const uint8_t* up,
                                                                               const float* post, const float* carried,
                                                                               float post_epsilon, const float* norm,
                                                                               float epsilon, int gelu, int rows,
                                                                               int rows_per_block, int ring) {
  static_assert(streamed_threads(Columns, false) == streamed_threads(NextColumns, true), "blocks of one size");
  admit_consumer();
  const int next = static_cast<int>(blockIdx.x) - y_blocks;
  if (next < 0)
    return make_published<StreamedShape<Columns, Words, 1, First>>(weights, NextColumns, y_blocks, y_rows_per_block,
                                                                   y_ring, x, {y, bias, nullptr, 0}, {link, armed});
  streamed_block<StreamedShape<NextColumns, NextWords, 2, L>>(
      streamed_task(gate, up, 0, rows, rows_per_block, ring, next, static_cast<int>(gridDim.x) - y_blocks),
      PublishedPostNormedInput{{link, norm, epsilon, post, carried, sum, post_epsilon}},
      StreamedResult{out, nullptr, nullptr, gelu});
}

template <class First, int Columns, int Words, class L0, class L1, class L2, int NextColumns, int NextWords>
__global__
__launch_bounds__(streamed_threads(Columns, false), streamed_residents(Columns, false)) void chained_products(
    float* out0, float* out1, float* out2, float* y, float* link, float* armed, const uint8_t* weights, const float* x,
    const float* bias, const float* residual, int y_blocks, int y_rows_per_block, int y_ring, const uint8_t* weights0,
    const uint8_t* weights1, const uint8_t* weights2, const float* norm, float epsilon, const float* bias0,
    const float* bias1, const float* bias2, int rows0, int rows1, int rows2, int blocks0, int blocks1, int blocks2,
    int rows_per_block0, int rows_per_block1, int rows_per_block2, int ring0, int ring1, int ring2) {
  static_assert(streamed_threads(Columns, false) == streamed_threads(NextColumns, false), "blocks of one size");
  admit_consumer();
  const int next = static_cast<int>(blockIdx.x) - y_blocks;
  if (next < 0)
    return make_published<StreamedShape<Columns, Words, 1, First>>(weights, NextColumns, y_blocks, y_rows_per_block,
                                                                   y_ring, x, {y, bias, residual, 0}, {link, armed});
  const PartTask part = part_task({out0, weights0, bias0, rows0, blocks0, rows_per_block0, ring0},
                                  {out1, weights1, bias1, rows1, blocks1, rows_per_block1, ring1},
                                  {out2, weights2, bias2, rows2, blocks2, rows_per_block2, ring2}, next);
  streamed_block<StreamedShape<NextColumns, NextWords, 1, L0, L1, L2>>(part.task, PublishedInput{{link, norm, epsilon}},
                                                                       part.result);
}

}  // namespace LANE_NAMESPACE
