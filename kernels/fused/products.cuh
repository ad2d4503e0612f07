// Products that begin with their input's norm and end with what is added to them. A is how activations enter: Floats,
// Int8x2 or Int8 (fused/activations.cuh); x is float in all three. Where `norm` is not null, x is first normed: x /
// sqrt(mean(x^2) + epsilon) * norm. Any bias or residual may be null. Launch: kProductThreads threads, any number of
// blocks; every block prepares all tokens' activations in its dynamic shared memory, so these are for few tokens.
#pragma once
#include "base/launch.cuh"
#include "fused/activations.cuh"
#include "ops/elementwise.cuh"

namespace LANE_NAMESPACE {

/// out[t][r] = w[r] · n(x[t]) + bias[r] + residual[t][r].
template <class A, class Q>
__global__ void __launch_bounds__(kProductThreads)
    product(float* out, const uint8_t* w, const float* bias, const float* residual, const float* x, const float* norm,
            float epsilon, int rows, int columns, int tokens) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const uint8_t* prepared = A::prepare(shared, x, norm, epsilon, columns, tokens);
  product_rows(ProductPlaces{out, w, row_bytes<Q>(columns), rows, rows, 0, 1, bias, residual},
               A::template rows<Q>(prepared, columns), tokens);
}

/// Three matrices on one input: out_i[t][r] = w_i[r] · n(x[t]) + bias_i[r]. The first blocks0 blocks take matrix 0, the
/// next blocks1 matrix 1, the rest matrix 2 (which may have no rows).
template <class A, class Q0, class Q1, class Q2>
__global__ void __launch_bounds__(kProductThreads)
    products(float* out0, float* out1, float* out2, const uint8_t* w0, const uint8_t* w1, const uint8_t* w2,
             const float* bias0, const float* bias1, const float* bias2, const float* x, const float* norm,
             float epsilon, int rows0, int rows1, int rows2, int blocks0, int blocks1, int columns, int tokens) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const uint8_t* prepared = A::prepare(shared, x, norm, epsilon, columns, tokens);
  const int block = static_cast<int>(blockIdx.x), blocks2 = static_cast<int>(gridDim.x) - blocks0 - blocks1;
  if (block < blocks0)
    product_rows(ProductPlaces{out0, w0, row_bytes<Q0>(columns), rows0, rows0, 0, 1, bias0},
                 A::template rows<Q0>(prepared, columns), tokens, block, blocks0);
  else if (block < blocks0 + blocks1)
    product_rows(ProductPlaces{out1, w1, row_bytes<Q1>(columns), rows1, rows1, 0, 1, bias1},
                 A::template rows<Q1>(prepared, columns), tokens, block - blocks0, blocks1);
  else
    product_rows(ProductPlaces{out2, w2, row_bytes<Q2>(columns), rows2, rows2, 0, 1, bias2},
                 A::template rows<Q2>(prepared, columns), tokens, block - blocks0 - blocks1, blocks2);
}

template <class G, int TOKENS, class GateRows, class UpRows>
__device__ __forceinline__ void gated_row(float* out, const uint8_t* gate_row, const uint8_t* up_row,
                                          const GateRows& gate_x, const UpRows& up_x, float limit, float slope,
                                          int rows, int first_token, int tokens) {
  float g[TOKENS], u[TOKENS];
  row_sums(gate_row, gate_x, EvenRows{first_token, 1}, tokens, g);
  row_sums(up_row, up_x, EvenRows{first_token, 1}, tokens, u);
  if (lane_index() != kWarpLeader) return;
  LANE_UNROLL
  for (int t = 0; t < TOKENS; t++) {
    if (t >= tokens) break;
    out[int64_t(first_token + t) * rows] = G::apply(g[t], u[t], limit, slope);
  }
}

/// out[t][r] = G(gate[r] · n(x[t]), up[r] · n(x[t])): a warp computes a row of both.
template <class A, class Qg, class Qu, class G>
__global__ void __launch_bounds__(kProductThreads)
    gated_product(float* out, const uint8_t* gate_weights, const uint8_t* up_weights, const float* x, const float* norm,
                  float epsilon, float limit, float slope, int rows, int columns, int tokens) {
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const uint8_t* prepared = A::prepare(shared, x, norm, epsilon, columns, tokens);
  const auto gate_x = A::template rows<Qg>(prepared, columns);
  const auto up_x = A::template rows<Qu>(prepared, columns);
  const WarpRows mine = warp_rows(rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  for (int row = mine.first; row < mine.last; row++) {
    const uint8_t *gate_row = gate_weights + row * row_bytes<Qg>(columns),
                  *up_row = up_weights + row * row_bytes<Qu>(columns);
    if (tokens == 1) {
      gated_row<G, 1>(out + row, gate_row, up_row, gate_x, up_x, limit, slope, rows, 0, 1);
    } else {
      for (int t = 0; t < tokens; t += kTokens)
        gated_row<G, kTokens>(out + row, gate_row, up_row, gate_x, up_x, limit, slope, rows, t,
                              tokens - t < kTokens ? tokens - t : kTokens);
    }
  }
}

}  // namespace LANE_NAMESPACE
