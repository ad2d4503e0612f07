// Products of chosen experts for several tokens: a group's matrices are read once for `part` of its choices. See note
// [expert groups]. A says how activations enter: floats, or rows that a launch before has quantized. Launch:
// kProductThreads threads, grid.x any number of blocks, grid.y the groups there is room for; dynamic shared memory for
// `part` rows of activations.
#pragma once
#include "base/launch.cuh"
#include "fused/experts.cuh"
#include "ops/expert_groups.cuh"

namespace LANE_NAMESPACE {

/// The choices and what they read: x has `words` 4-byte words a row, and choice i reads row i * x_rows / choices.
struct GroupedChoices {
  const int *order, *expert, *first;
  const uint8_t* x;
  int choices, words, x_rows, part;
};

/// Copies the activation rows of `count` choices to `shared`, one after the other.
__device__ __forceinline__ void stage_rows(uint8_t* shared, const GroupedChoices& from, const int* order, int count) {
  for (int t = 0; t < count; t++) {
    const int64_t row = int64_t(order[t]) * from.x_rows / from.choices;
    const uint32_t* x = reinterpret_cast<const uint32_t*>(from.x) + row * from.words;
    uint32_t* to = reinterpret_cast<uint32_t*>(shared) + t * from.words;
    for (int i = threadIdx.x; i < from.words; i += kProductThreads) to[i] = x[i];
  }
}

/// The block's rows for all choices of its group, blockIdx.y: product.row<TOKENS>(row, order, first, tokens) for rows
/// `first` … of those in shared memory, whose choices are order[0] ….
template <class Product>
__device__ __forceinline__ void grouped_rows(const Product& product, uint8_t* shared, const GroupedChoices& from,
                                             int rows) {
  const int group = static_cast<int>(blockIdx.y), end = from.first[group + 1];
  const WarpRows mine = warp_rows(rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  for (int begin = from.first[group]; begin < end; begin += from.part) {
    const int* order = from.order + begin;
    const int count = min(from.part, end - begin);
    __syncthreads();  // the part before has been read
    stage_rows(shared, from, order, count);
    __syncthreads();
    for (int row = mine.first; row < mine.last; row++) {
      for (int t = 0; t < count; t += kTokens) {
        if (count - t == 1)
          product.template compute<1>(row, order + t, t, 1);
        else
          product.template compute<kTokens>(row, order + t, t, min(kTokens, count - t));
      }
    }
  }
}

template <class Activations>
struct GroupedProduct {
  ExpertRows at;
  Activations x;
  float* out;
  int rows;
  int64_t row_bytes;

  template <int TOKENS>
  __device__ __forceinline__ void compute(int row, const int* order, int first, int tokens) const {
    float sums[TOKENS];
    row_sums(at.weights + row * row_bytes, x, EvenRows{first, 1}, tokens, sums);
    if (lane_index() != kWarpLeader) return;
    LANE_UNROLL
    for (int t = 0; t < TOKENS; t++)
      if (t < tokens) out[int64_t(order[t]) * rows + row] = at.bias ? sums[t] + at.bias[row] : sums[t];
  }
};

/// out[i][r] = w[expert of i][r] · x[i * x_rows / choices] + bias[expert of i][r] (bias null: none).
template <class A, class Q>
__global__ void __launch_bounds__(kProductThreads)
    grouped_product(float* out, const uint8_t* w, const float* bias, const uint8_t* x, const int* order,
                    const int* expert, const int* first, int choices, int rows, int columns, int words, int x_rows,
                    int part) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const auto activations = A::template rows<Q>(shared, columns);
  const ExpertRows at = expert_rows_of<Q>(w, bias, expert[blockIdx.y], rows, columns);
  const GroupedProduct<decltype(A::template rows<Q>(shared, columns))> product{at, activations, out, rows,
                                                                               row_bytes<Q>(columns)};
  grouped_rows(product, shared, GroupedChoices{order, expert, first, x, choices, words, x_rows, part}, rows);
}

template <class GateActivations, class UpActivations, class G>
struct GroupedGate {
  ExpertRows gate, up;
  GateActivations gate_x;
  UpActivations up_x;
  float* out;
  float limit, slope;
  int rows;
  int64_t gate_bytes, up_bytes;

  template <int TOKENS>
  __device__ __forceinline__ void compute(int row, const int* order, int first, int tokens) const {
    float g[TOKENS], u[TOKENS];
    row_sums(gate.weights + row * gate_bytes, gate_x, EvenRows{first, 1}, tokens, g);
    row_sums(up.weights + row * up_bytes, up_x, EvenRows{first, 1}, tokens, u);
    if (lane_index() != kWarpLeader) return;
    LANE_UNROLL
    for (int t = 0; t < TOKENS; t++) {
      if (t >= tokens) break;
      if (gate.bias) g[t] += gate.bias[row];
      if (up.bias) u[t] += up.bias[row];
      out[int64_t(order[t]) * rows + row] = G::apply(g[t], u[t], limit, slope);
    }
  }
};

/// out[i][r] = G(gate, up), each as grouped_product computes it.
template <class A, class Qg, class Qu, class G>
__global__ void __launch_bounds__(kProductThreads)
    grouped_gated_product(float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* gate_bias,
                          const float* up_bias, const uint8_t* x, const int* order, const int* expert, const int* first,
                          float limit, float slope, int choices, int rows, int columns, int words, int x_rows,
                          int part) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const auto gate_x = A::template rows<Qg>(shared, columns);
  const auto up_x = A::template rows<Qu>(shared, columns);
  const int chosen = expert[blockIdx.y];
  const GroupedGate<decltype(A::template rows<Qg>(shared, columns)), decltype(A::template rows<Qu>(shared, columns)), G>
      product{expert_rows_of<Qg>(gate_weights, gate_bias, chosen, rows, columns),
              expert_rows_of<Qu>(up_weights, up_bias, chosen, rows, columns),
              gate_x,
              up_x,
              out,
              limit,
              slope,
              rows,
              row_bytes<Qg>(columns),
              row_bytes<Qu>(columns)};
  grouped_rows(product, shared, GroupedChoices{order, expert, first, x, choices, words, x_rows, part}, rows);
}

}  // namespace LANE_NAMESPACE
