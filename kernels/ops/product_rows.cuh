// The body of every product of a weight matrix with activations: a warp computes whole rows, a lane whole groups of 32
// weights. Bound by reading the weights: a row's groups are decoded once for up to kTokens activations.
//
// The order of sums is fixed and depends on `columns` alone, so an output has the same bits whatever the grid, the chip
// and the other tokens: lane l takes groups l, l + 32, … in turn, and the lanes' sums are added as warp_sum says.
#pragma once
#include "base/dot.cuh"
#include "base/warp.cuh"
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

constexpr int kProductThreads = 256;  // a block of every product kernel
constexpr int kTokens = 8;            // tokens that share one decoding of the weights

/// Float activations: a dequantized weight times a float, summed in double. The product of two floats is exact in
/// double, so contraction into a fused operation changes nothing.
template <class Q>
struct FloatActivations {
  using Sum = double;
  const float* values;  // rows of `columns`
  int columns;

  struct Group {
    float w[kGroup];
  };
  __device__ __forceinline__ int left_in(int group) const { return columns - group * kGroup; }
  __device__ __forceinline__ void load(Group& g, const uint8_t* row, int group) const {
    decode_group<Q>(row, group, left_in(group), g.w);
    keep_whole(g.w);
  }
  /// sum + the group's share of the row's product with activation row `x_row`.
  __device__ __forceinline__ Sum add(Sum sum, const Group& g, int64_t x_row, int group) const {
    const float* x = values + x_row * columns + group * kGroup;
    if (Q::kElements == 1 && left_in(group) < kGroup) {
      float padded[kGroup];
      LANE_UNROLL
      for (int i = 0; i < kGroup; i++) padded[i] = i < left_in(group) ? x[i] : 0.0f;
      return sum + dot_floats(g.w, padded);
    }
    return sum + dot_floats(g.w, x);
  }
};

/// Where a product's rows lie: out[t * out_stride + r] = row r of `weights` · activation row x_first + t * x_step.
struct ProductPlaces {
  float* out;
  const uint8_t* weights;
  int64_t row_bytes;
  int rows;
  int64_t out_stride, x_first, x_step;
};

/// One row for up to TOKENS tokens.
template <class Activations, int TOKENS>
__device__ __forceinline__ void product_row(const ProductPlaces& at, const Activations& x, int row, int first_token,
                                            int tokens) {
  typename Activations::Sum sum[TOKENS] = {};
  const uint8_t* weights = at.weights + row * at.row_bytes;
  const int groups = (x.columns + kGroup - 1) / kGroup;
  for (int group = lane_index(); group < groups; group += kWarpLanes) {
    typename Activations::Group decoded;
    x.load(decoded, weights, group);
    LANE_UNROLL
    for (int t = 0; t < TOKENS; t++) {
      if (t < tokens) sum[t] = x.add(sum[t], decoded, at.x_first + (first_token + t) * at.x_step, group);
    }
  }
  LANE_UNROLL
  for (int t = 0; t < TOKENS; t++) {
    if (t >= tokens) break;
    const typename Activations::Sum total = warp_sum_to_leader(sum[t]);
    if (lane_index() == kWarpLeader) at.out[(first_token + t) * at.out_stride + row] = static_cast<float>(total);
  }
}

/// All rows, over the grid's x: any number of blocks, each warp a run of consecutive rows.
template <class Activations>
__device__ __forceinline__ void product_rows(const ProductPlaces& at, const Activations& x, int tokens) {
  const int warps = static_cast<int>(gridDim.x * (blockDim.x / kWarpLanes));
  const int run = (at.rows + warps - 1) / warps;
  const int first = (static_cast<int>(blockIdx.x * (blockDim.x / kWarpLanes)) + warp_index()) * run;
  const int last = first + run < at.rows ? first + run : at.rows;
  for (int row = first; row < last; row++) {
    if (tokens == 1) {
      product_row<Activations, 1>(at, x, row, 0, 1);
    } else {
      for (int t = 0; t < tokens; t += kTokens) {
        product_row<Activations, kTokens>(at, x, row, t, tokens - t < kTokens ? tokens - t : kTokens);
      }
    }
  }
}

/// out[t][r] = row r of w · activation row t.
template <class Q, class Activations>
__device__ __forceinline__ void matrix_rows(float* out, const uint8_t* w, const Activations& x, int rows, int tokens) {
  product_rows(ProductPlaces{out, w, row_bytes<Q>(x.columns), rows, rows, 0, 1}, x, tokens);
}

/// A matrix and an activation row a head: out[t][h][r] = row r of w[h] · activation row t * heads + h. blockIdx.y: h.
template <class Q, class Activations>
__device__ __forceinline__ void head_rows(float* out, const uint8_t* w, const Activations& x, int heads, int rows,
                                          int tokens) {
  const int64_t head = blockIdx.y, bytes = row_bytes<Q>(x.columns);
  const int64_t out_stride = static_cast<int64_t>(heads) * rows;
  product_rows(ProductPlaces{out + head * rows, w + head * rows * bytes, bytes, rows, out_stride, head, heads}, x,
               tokens);
}

/// A chosen matrix a choice: out[i][r] = row r of w[chosen[i]] · activation row i * x_rows / count. blockIdx.y: i.
template <class Q, class Activations>
__device__ __forceinline__ void expert_rows(float* out, const uint8_t* w, const Activations& x, const int* chosen,
                                            int count, int rows, int x_rows) {
  const int64_t i = blockIdx.y, bytes = row_bytes<Q>(x.columns);
  const int64_t x_row = i * x_rows / count;
  product_rows(ProductPlaces{out + i * rows, w + chosen[i] * rows * bytes, bytes, rows, 0, x_row, 0}, x, 1);
}

}  // namespace LANE_NAMESPACE
