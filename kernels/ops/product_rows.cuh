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

/// Where a product's rows lie: out[t * out_stride + r] = row r of `weights` · activation row x_first + t * x_step, then
/// + bias[r], then + residual[t * out_stride + r], where these are not null.
struct ProductPlaces {
  float* out;
  const uint8_t* weights;
  int64_t row_bytes;
  int rows;
  int64_t out_stride, x_first, x_step;
  const float *bias = nullptr, *residual = nullptr;
};

/// The activation rows first, first + step, …
struct EvenRows {
  int64_t first, step;
  __device__ __forceinline__ int64_t operator()(int t) const { return first + t * step; }
};

/// One row for up to TOKENS tokens: sums[t] = weights · activation row x_row(t), in lane kWarpLeader alone.
template <class Activations, class Rows, int TOKENS>
__device__ __forceinline__ void row_sums(const uint8_t* weights, const Activations& x, const Rows& x_row, int tokens,
                                         float (&sums)[TOKENS]) {
  typename Activations::Sum sum[TOKENS] = {};
  const int groups = (x.columns + kGroup - 1) / kGroup;
  for (int group = lane_index(); group < groups; group += kWarpLanes) {
    typename Activations::Group decoded;
    x.load(decoded, weights, group);
    LANE_UNROLL
    for (int t = 0; t < TOKENS; t++) {
      if (t < tokens) sum[t] = x.add(sum[t], decoded, x_row(t), group);
    }
  }
  LANE_UNROLL
  for (int t = 0; t < TOKENS; t++) {
    if (t >= tokens) break;
    sums[t] = static_cast<float>(warp_sum_to_leader(sum[t]));
  }
}

template <class Activations, int TOKENS>
__device__ __forceinline__ void product_row(const ProductPlaces& at, const Activations& x, int row, int first_token,
                                            int tokens) {
  float sums[TOKENS];
  row_sums(at.weights + row * at.row_bytes, x, EvenRows{at.x_first + first_token * at.x_step, at.x_step}, tokens, sums);
  if (lane_index() != kWarpLeader) return;
  LANE_UNROLL
  for (int t = 0; t < TOKENS; t++) {
    if (t >= tokens) break;
    const int64_t place = (first_token + t) * at.out_stride + row;
    float value = sums[t];
    if (at.bias) value += at.bias[row];
    if (at.residual) value += at.residual[place];
    at.out[place] = value;
  }
}

/// The consecutive rows of `rows` that this warp takes when `blocks` blocks share them and this is number `block`.
struct WarpRows {
  int first, last;
};
__device__ __forceinline__ WarpRows warp_rows(int rows, int block, int blocks) {
  const int warps = blocks * static_cast<int>(blockDim.x / kWarpLanes);
  const int run = (rows + warps - 1) / warps;
  const int first = (block * static_cast<int>(blockDim.x / kWarpLanes) + warp_index()) * run;
  return {first, first + run < rows ? first + run : rows};
}

/// All rows, shared by any number of blocks.
template <class Activations>
__device__ __forceinline__ void product_rows(const ProductPlaces& at, const Activations& x, int tokens, int block,
                                             int blocks) {
  const WarpRows mine = warp_rows(at.rows, block, blocks);
  for (int row = mine.first; row < mine.last; row++) {
    if (tokens == 1) {
      product_row<Activations, 1>(at, x, row, 0, 1);
    } else {
      for (int t = 0; t < tokens; t += kTokens) {
        product_row<Activations, kTokens>(at, x, row, t, tokens - t < kTokens ? tokens - t : kTokens);
      }
    }
  }
}
/// By the grid's x.
template <class Activations>
__device__ __forceinline__ void product_rows(const ProductPlaces& at, const Activations& x, int tokens) {
  product_rows(at, x, tokens, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
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
