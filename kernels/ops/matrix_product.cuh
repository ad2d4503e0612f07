// Products with float activations (`--activations f32`). Q is the weights' format; `columns` is a multiple of its
// block's elements, `rows` any number. Sums are in double (ops/product_rows.cuh). Launch: kProductThreads threads;
// grid.x any number of blocks (a warp takes ceil(rows / warps) consecutive rows), grid.y as each kernel says.
#pragma once
#include "base/launch.cuh"
#include "ops/product_rows.cuh"

namespace LANE_NAMESPACE {

/// out[t][r] = sum over c of w[r][c] x[t][c].
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    matrix_product(float* out, const uint8_t* w, const float* x, int rows, int columns, int tokens) {
  follow_producer();
  matrix_rows<Q>(out, w, FloatActivations<Q>{x, columns}, rows, tokens);
}

/// One matrix a head: out[t][h][r] = sum over c of w[h][r][c] x[t][h][c]. grid.y: heads.
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    head_product(float* out, const uint8_t* w, const float* x, int heads, int rows, int columns, int tokens) {
  follow_producer();
  head_rows<Q>(out, w, FloatActivations<Q>{x, columns}, heads, rows, tokens);
}

/// w is a stack of matrices, one an expert: out[i][r] = sum over c of w[chosen[i]][r][c] x[i * x_rows / count][c].
/// So with x_rows = count each choice has its own activation, and with x_rows tokens each token's choices share one.
/// grid.y: count.
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    expert_product(float* out, const uint8_t* w, const float* x, const int* chosen, int count, int rows, int columns,
                   int x_rows) {
  follow_producer();
  expert_rows<Q>(out, w, FloatActivations<Q>{x, columns}, chosen, count, rows, x_rows);
}

}  // namespace LANE_NAMESPACE
