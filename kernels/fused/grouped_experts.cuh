// Products of chosen experts for several tokens: a group's matrices are read once for all its choices. See note [expert
// groups]. A says how activations enter: floats, or rows that a launch before has quantized. Launch: kProductThreads
// threads, grid.x any number of blocks, grid.y the groups there is room for.
#pragma once
#include "base/launch.cuh"
#include "fused/experts.cuh"
#include "ops/expert_groups.cuh"

namespace LANE_NAMESPACE {

/// Up to CHOICES choices of a group, and the activation row that each reads.
template <int CHOICES>
struct GroupPart {
  int count, choice[CHOICES];
  int64_t row[CHOICES];

  __device__ __forceinline__ GroupPart(const int* order, int count_, int64_t x_rows, int64_t choices) : count(count_) {
    LANE_UNROLL
    for (int t = 0; t < CHOICES; t++) {
      choice[t] = order[t < count ? t : 0];
      row[t] = choice[t] * x_rows / choices;
    }
  }
  __device__ __forceinline__ int64_t operator()(int t) const { return row[t]; }
};

/// Calls `compute` for the choices of a group, kTokens at a time.
template <class Compute>
__device__ __forceinline__ void for_parts(const int* order, int count, int64_t x_rows, int64_t choices,
                                          const Compute& compute) {
  for (int t = 0; t < count; t += kTokens) {
    if (count - t == 1)
      compute(GroupPart<1>(order + t, 1, x_rows, choices));
    else
      compute(GroupPart<kTokens>(order + t, count - t < kTokens ? count - t : kTokens, x_rows, choices));
  }
}

template <class A, class Q>
using ActivationsOf = decltype(A::template rows<Q>(nullptr, 0));

template <class Activations>
struct GroupedProduct {
  ExpertRows at;
  Activations x;
  float* out;
  int rows, row;
  int64_t row_bytes;

  template <int CHOICES>
  __device__ __forceinline__ void operator()(const GroupPart<CHOICES>& part) const {
    float sums[CHOICES];
    row_sums(at.weights + row * row_bytes, x, part, part.count, sums);
    if (lane_index() != kWarpLeader) return;
    LANE_UNROLL
    for (int t = 0; t < CHOICES; t++)
      if (t < part.count) out[int64_t(part.choice[t]) * rows + row] = at.bias ? sums[t] + at.bias[row] : sums[t];
  }
};

/// out[i][r] = w[expert of i][r] · x[i * x_rows / choices] + bias[expert of i][r] (bias null: none).
template <class A, class Q>
__global__ void __launch_bounds__(kProductThreads)
    grouped_product(float* out, const uint8_t* w, const float* bias, const uint8_t* x, const int* order,
                    const int* expert, const int* first, int choices, int rows, int columns, int x_rows) {
  follow_producer();
  const int group = static_cast<int>(blockIdx.y), begin = first[group], count = first[group + 1] - begin;
  if (count == 0) return;
  GroupedProduct<ActivationsOf<A, Q>> product{expert_rows_of<Q>(w, bias, expert[group], rows, columns),
                                              A::template rows<Q>(x, columns),
                                              out,
                                              rows,
                                              0,
                                              row_bytes<Q>(columns)};
  const WarpRows mine = warp_rows(rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  for (product.row = mine.first; product.row < mine.last; product.row++)
    for_parts(order + begin, count, x_rows, choices, product);
}

template <class GateActivations, class UpActivations, class G>
struct GroupedGate {
  ExpertRows gate, up;
  GateActivations gate_x;
  UpActivations up_x;
  float* out;
  float limit, slope;
  int rows, row;
  int64_t gate_bytes, up_bytes;

  template <int CHOICES>
  __device__ __forceinline__ void operator()(const GroupPart<CHOICES>& part) const {
    float g[CHOICES], u[CHOICES];
    row_sums(gate.weights + row * gate_bytes, gate_x, part, part.count, g);
    row_sums(up.weights + row * up_bytes, up_x, part, part.count, u);
    if (lane_index() != kWarpLeader) return;
    LANE_UNROLL
    for (int t = 0; t < CHOICES; t++) {
      if (t >= part.count) break;
      if (gate.bias) g[t] += gate.bias[row];
      if (up.bias) u[t] += up.bias[row];
      out[int64_t(part.choice[t]) * rows + row] = G::apply(g[t], u[t], limit, slope);
    }
  }
};

/// out[i][r] = G(gate, up), each as grouped_product computes it.
template <class A, class Qg, class Qu, class G>
__global__ void __launch_bounds__(kProductThreads)
    grouped_gated_product(float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* gate_bias,
                          const float* up_bias, const uint8_t* x, const int* order, const int* expert, const int* first,
                          float limit, float slope, int choices, int rows, int columns, int x_rows) {
  follow_producer();
  const int group = static_cast<int>(blockIdx.y), begin = first[group], count = first[group + 1] - begin;
  if (count == 0) return;
  GroupedGate<ActivationsOf<A, Qg>, ActivationsOf<A, Qu>, G> product{
      expert_rows_of<Qg>(gate_weights, gate_bias, expert[group], rows, columns),
      expert_rows_of<Qu>(up_weights, up_bias, expert[group], rows, columns),
      A::template rows<Qg>(x, columns),
      A::template rows<Qu>(x, columns),
      out,
      limit,
      slope,
      rows,
      0,
      row_bytes<Qg>(columns),
      row_bytes<Qu>(columns)};
  const WarpRows mine = warp_rows(rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  for (product.row = mine.first; product.row < mine.last; product.row++)
    for_parts(order + begin, count, x_rows, choices, product);
}

}  // namespace LANE_NAMESPACE
