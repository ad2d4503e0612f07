// Routed experts in few launches. A and what is said of it: fused/activations.cuh; each block prepares the one
// activation row that it reads.
#pragma once
#include "base/launch.cuh"
#include "fused/activations.cuh"
#include "ops/elementwise.cuh"
#include "ops/experts.cuh"

namespace LANE_NAMESPACE {

/// top_choice by r, then chosen_share by `scores`. Grid: a warp a token.
__global__ void route(int* ids, float* share, const float* r, const float* bias, const float* scores, int experts,
                      int count, int groups, int kept, int choose_by, int by, int normalised, float factor) {
  follow_producer();
  LANE_DYNAMIC_SHARED(float, shared);
  const int64_t token = blockIdx.x;
  int* chosen = ids + token * count;
  choose_experts(chosen, shared, r + token * experts, bias, experts, count, groups, kept, choose_by);
  __syncwarp();
  share_chosen(share + token * count, scores + token * experts, chosen, experts, count, by, normalised, factor);
}

/// An expert's matrix and bias.
struct ExpertRows {
  const uint8_t* weights;
  const float* bias;
};
template <class Q>
__device__ __forceinline__ ExpertRows expert_rows_of(const uint8_t* w, const float* bias, int expert, int rows,
                                                     int columns) {
  return {w + expert * rows * row_bytes<Q>(columns), bias ? bias + int64_t(expert) * rows : nullptr};
}

/// out[i][r] = w[chosen[i]][r] · x[i * x_rows / count] + bias[chosen[i]][r] (bias null: none). Grid.y: count.
template <class A, class Q>
__global__ void __launch_bounds__(kProductThreads)
    chosen_product(float* out, const uint8_t* w, const float* bias, const float* x, const int* chosen, int count,
                   int rows, int columns, int x_rows) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int64_t i = blockIdx.y;
  const uint8_t* prepared = A::prepare(shared, x + i * x_rows / count * columns, nullptr, 0.0f, columns, 1);
  const ExpertRows at = expert_rows_of<Q>(w, bias, chosen[i], rows, columns);
  product_rows(ProductPlaces{out + i * rows, at.weights, row_bytes<Q>(columns), rows, rows, 0, 1, at.bias},
               A::template rows<Q>(prepared, columns), 1);
}

/// out[i][r] = G(gate, up), each as chosen_product computes it. Grid.y: count.
template <class A, class Qg, class Qu, class G>
__global__ void __launch_bounds__(kProductThreads)
    chosen_gated_product(float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* gate_bias,
                         const float* up_bias, const float* x, const int* chosen, float limit, float slope, int count,
                         int rows, int columns, int x_rows) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int64_t i = blockIdx.y;
  const uint8_t* prepared = A::prepare(shared, x + i * x_rows / count * columns, nullptr, 0.0f, columns, 1);
  const ExpertRows gate = expert_rows_of<Qg>(gate_weights, gate_bias, chosen[i], rows, columns);
  const ExpertRows up = expert_rows_of<Qu>(up_weights, up_bias, chosen[i], rows, columns);
  const auto gate_x = A::template rows<Qg>(prepared, columns);
  const auto up_x = A::template rows<Qu>(prepared, columns);
  const WarpRows mine = warp_rows(rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  for (int row = mine.first; row < mine.last; row++) {
    float g[1], u[1];
    row_sums(gate.weights + row * row_bytes<Qg>(columns), gate_x, EvenRows{0, 1}, 1, g);
    row_sums(up.weights + row * row_bytes<Qu>(columns), up_x, EvenRows{0, 1}, 1, u);
    if (lane_index() != kWarpLeader) continue;
    if (gate.bias) g[0] += gate.bias[row];
    if (up.bias) u[0] += up.bias[row];
    out[i * rows + row] = G::apply(g[0], u[0], limit, slope);
  }
}

}  // namespace LANE_NAMESPACE
