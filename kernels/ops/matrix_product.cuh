// Products with float activations (`--activations f32`). Q is the weights' format; `columns` is a multiple of its
// block's elements, `rows` any number. Sums are in double (ops/product_rows.cuh). Launch: kProductThreads threads;
// grid.x any number of blocks (a warp takes ceil(rows / warps) consecutive rows), grid.y as each kernel says.
#pragma once
#include "ops/product_rows.cuh"

namespace LANE_NAMESPACE {

/// out[t][r] = sum over c of w[r][c] x[t][c].
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    matrix_product(float* out, const uint8_t* w, const float* x, int rows, int columns, int tokens) {
  product_rows(ProductPlaces{out, w, row_bytes<Q>(columns), rows, rows, 0, 1}, FloatActivations<Q>{x, columns}, tokens);
}

/// One matrix a head: out[t][h][r] = sum over c of w[h][r][c] x[t][h][c]. grid.y: heads.
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    head_product(float* out, const uint8_t* w, const float* x, int heads, int rows, int columns, int tokens) {
  const int head = static_cast<int>(blockIdx.y);
  const int64_t bytes = row_bytes<Q>(columns);
  const ProductPlaces at{out + static_cast<int64_t>(head) * rows,
                         w + head * rows * bytes,
                         bytes,
                         rows,
                         static_cast<int64_t>(heads) * rows,
                         head,
                         heads};
  product_rows(at, FloatActivations<Q>{x, columns}, tokens);
}

/// w is a stack of matrices, one an expert: out[i][r] = sum over c of w[chosen[i]][r][c] x[i * x_rows / count][c].
/// So with x_rows = count each choice has its own activation, and with x_rows tokens each token's choices share one.
/// grid.y: count.
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    expert_product(float* out, const uint8_t* w, const float* x, const int* chosen, int count, int rows, int columns,
                   int x_rows) {
  const int64_t i = blockIdx.y;
  const int64_t bytes = row_bytes<Q>(columns);
  const ProductPlaces at{out + i * rows, w + chosen[i] * rows * bytes, bytes, rows, 0, i * x_rows / count, 0};
  product_rows(at, FloatActivations<Q>{x, columns}, 1);
}

}  // namespace LANE_NAMESPACE
