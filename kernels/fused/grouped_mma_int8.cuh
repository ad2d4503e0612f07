// Products of chosen experts for several tokens on integer tensor cores (ops/mma_int8_tile.cuh), with the bits of
// fused/grouped_experts.cuh: a group's matrices are read once for TOKENS of its choices. See note [expert groups].
//
// x: quantized rows of columns / 32 groups of PLANES planes; choice i reads row i * x_rows / choices. Launch:
// kInt8Threads threads; grid.x the groups there is room for, grid.y ceil(rows / kInt8Rows); dynamic shared memory and
// TOKENS: mma_int8_geometry.
#pragma once
#include "fused/experts.cuh"
#include "ops/mma_int8_product.cuh"

namespace LANE_NAMESPACE {

/// The choices, and the activation row of each.
struct ChoiceRows {
  const int* order;
  int choices, x_rows;
  __device__ __forceinline__ int64_t operator()(int t) const { return int64_t(order[t]) * x_rows / choices; }
};

/// out[i][r] = w[expert of i][r] · x[i * x_rows / choices] + bias[expert of i][r] (bias null: none).
template <class Q, int PLANES, int TOKENS>
__global__ void __launch_bounds__(kInt8Threads, mma_int8_blocks(TOKENS))
    grouped_mma_int8_product(float* out, const uint8_t* w, const float* bias, const uint8_t* x, const int* order,
                             const int* expert, const int* first, int choices, int rows, int columns, int x_rows) {
  using Tile = Int8Tile<Q, PLANES, TOKENS>;
  follow_producer();
  LANE_DYNAMIC_SHARED(typename Tile::Shared, shared);
  const int group = static_cast<int>(blockIdx.x), first_row = static_cast<int>(blockIdx.y) * kInt8Rows;
  const int end = first[group + 1], groups = columns / kGroup;
  const ExpertRows at = expert_rows_of<Q>(w, bias, expert[group], rows, columns);
  LANE_KEEP_LOOP
  for (int begin = first[group]; begin < end; begin += TOKENS) {
    const int count = min(TOKENS, end - begin);
    float sums[Tile::kOwn];
    Tile::compute(sums, *shared, at.weights, first_row, rows, groups,
                  Tile::tokens_of(x, ChoiceRows{order + begin, choices, x_rows}, count, groups));
    LANE_UNROLL
    for (int i = 0; i < Tile::kOwn; i++) {
      const int row = first_row + Tile::row(i);
      if (Tile::token(i) >= count || row >= rows) continue;
      out[int64_t(order[begin + Tile::token(i)]) * rows + row] = at.bias ? sums[i] + at.bias[row] : sums[i];
    }
  }
}

/// out[i][r] = G(gate, up), each as grouped_mma_int8_product computes it.
template <class Qg, class Qu, class G, int PLANES, int TOKENS>
__global__ void __launch_bounds__(kInt8Threads, mma_int8_blocks(TOKENS))
    grouped_mma_int8_gated_product(float* out, const uint8_t* gate_weights, const uint8_t* up_weights,
                                   const float* gate_bias, const float* up_bias, const uint8_t* x, const int* order,
                                   const int* expert, const int* first, float limit, float slope, int choices, int rows,
                                   int columns, int x_rows) {
  using Gate = Int8Tile<Qg, PLANES, TOKENS>;
  using Up = Int8Tile<Qu, PLANES, TOKENS>;
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int group = static_cast<int>(blockIdx.x), first_row = static_cast<int>(blockIdx.y) * kInt8Rows;
  const int end = first[group + 1], groups = columns / kGroup;
  const ExpertRows gate = expert_rows_of<Qg>(gate_weights, gate_bias, expert[group], rows, columns);
  const ExpertRows up = expert_rows_of<Qu>(up_weights, up_bias, expert[group], rows, columns);
  LANE_KEEP_LOOP
  for (int begin = first[group]; begin < end; begin += TOKENS) {
    const int count = min(TOKENS, end - begin);
    const ChoiceRows x_row{order + begin, choices, x_rows};
    float g[Gate::kOwn], u[Up::kOwn];
    Gate::compute(g, *reinterpret_cast<typename Gate::Shared*>(shared), gate.weights, first_row, rows, groups,
                  Gate::tokens_of(x, x_row, count, groups));
    Up::compute(u, *reinterpret_cast<typename Up::Shared*>(shared), up.weights, first_row, rows, groups,
                Up::tokens_of(x, x_row, count, groups));
    LANE_UNROLL
    for (int i = 0; i < Gate::kOwn; i++) {
      const int row = first_row + Gate::row(i);
      if (Gate::token(i) >= count || row >= rows) continue;
      if (gate.bias) g[i] += gate.bias[row];
      if (up.bias) u[i] += up.bias[row];
      out[int64_t(order[begin + Gate::token(i)]) * rows + row] = G::apply(g[i], u[i], limit, slope);
    }
  }
}

}  // namespace LANE_NAMESPACE
