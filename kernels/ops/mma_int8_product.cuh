// Products of quantized weights, as stored, and the quantized activations of several tokens, on integer tensor cores
// (ops/mma_int8_tile.cuh): with the bits of ops/matrix_product_int8.cuh.
//
// x: rows of columns / 32 groups of PLANES planes, as quantize makes them. Q: the weights' format. Launch: kInt8Threads
// threads; grid (ceil(tokens / TOKENS), ceil(rows / kInt8Rows)), of heads so many blocks each; dynamic shared memory
// and TOKENS: mma_int8_geometry.
#pragma once
#include "base/launch.cuh"
#include "ops/elementwise.cuh"
#include "ops/mma_int8_tile.cuh"

namespace LANE_NAMESPACE {

/// Blocks of a multiprocessor: what registers allow.
constexpr int mma_int8_blocks(int tokens) { return tokens <= 16 ? 2 : 1; }

/// out[t][r] = w[r] · x[t] + bias[r] + residual[t][r]; bias and residual may be null.
template <class Q, int PLANES, int TOKENS>
__global__ void __launch_bounds__(kInt8Threads, mma_int8_blocks(TOKENS))
    mma_int8_product(float* out, const uint8_t* w, const float* bias, const float* residual, const uint8_t* x, int rows,
                     int columns, int tokens) {
  using Tile = Int8Tile<Q, PLANES, TOKENS>;
  follow_producer();
  LANE_DYNAMIC_SHARED(typename Tile::Shared, shared);
  const int first_token = static_cast<int>(blockIdx.x) * TOKENS, first_row = static_cast<int>(blockIdx.y) * kInt8Rows;
  const int count = min(TOKENS, tokens - first_token), groups = columns / kGroup;
  float sums[Tile::kOwn];
  Tile::compute(sums, *shared, w, first_row, rows, groups, Tile::tokens_of(x, EvenRows{first_token, 1}, count, groups));
  LANE_UNROLL
  for (int i = 0; i < Tile::kOwn; i++) {
    const int row = first_row + Tile::row(i);
    if (Tile::token(i) >= count || row >= rows) continue;
    const int64_t place = static_cast<int64_t>(first_token + Tile::token(i)) * rows + row;
    float value = sums[i];
    if (bias) value += bias[row];
    if (residual) value += residual[place];
    out[place] = value;
  }
}

/// out[t][r] = G(gate[r] · x[t], up[r] · x[t]).
template <class Qg, class Qu, class G, int PLANES, int TOKENS>
__global__ void __launch_bounds__(kInt8Threads, mma_int8_blocks(TOKENS))
    mma_int8_gated_product(float* out, const uint8_t* gate, const uint8_t* up, const uint8_t* x, float limit,
                           float slope, int rows, int columns, int tokens) {
  using Gate = Int8Tile<Qg, PLANES, TOKENS>;
  using Up = Int8Tile<Qu, PLANES, TOKENS>;
  follow_producer();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int first_token = static_cast<int>(blockIdx.x) * TOKENS, first_row = static_cast<int>(blockIdx.y) * kInt8Rows;
  const int count = min(TOKENS, tokens - first_token), groups = columns / kGroup;
  const EvenRows x_row{first_token, 1};
  float g[Gate::kOwn], u[Up::kOwn];
  Gate::compute(g, *reinterpret_cast<typename Gate::Shared*>(shared), gate, first_row, rows, groups,
                Gate::tokens_of(x, x_row, count, groups));
  Up::compute(u, *reinterpret_cast<typename Up::Shared*>(shared), up, first_row, rows, groups,
              Up::tokens_of(x, x_row, count, groups));
  LANE_UNROLL
  for (int i = 0; i < Gate::kOwn; i++) {
    const int row = first_row + Gate::row(i);
    if (Gate::token(i) >= count || row >= rows) continue;
    out[static_cast<int64_t>(first_token + Gate::token(i)) * rows + row] = G::apply(g[i], u[i], limit, slope);
  }
}

/// A matrix and an activation row a head: out[t][h][r] = w[h][r] · x[t * heads + h].
template <class Q, int PLANES, int TOKENS>
__global__ void __launch_bounds__(kInt8Threads, mma_int8_blocks(TOKENS))
    mma_int8_head_product(float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns,
                          int tokens) {
  using Tile = Int8Tile<Q, PLANES, TOKENS>;
  follow_producer();
  LANE_DYNAMIC_SHARED(typename Tile::Shared, shared);
  const int head = static_cast<int>(blockIdx.x) % heads, first_token = static_cast<int>(blockIdx.x) / heads * TOKENS;
  const int first_row = static_cast<int>(blockIdx.y) * kInt8Rows;
  const int count = min(TOKENS, tokens - first_token), groups = columns / kGroup;
  const uint8_t* matrix = w + static_cast<int64_t>(head) * rows * row_bytes<Q>(columns);
  float sums[Tile::kOwn];
  Tile::compute(sums, *shared, matrix, first_row, rows, groups,
                Tile::tokens_of(x, EvenRows{int64_t{first_token} * heads + head, heads}, count, groups));
  LANE_UNROLL
  for (int i = 0; i < Tile::kOwn; i++) {
    const int row = first_row + Tile::row(i);
    if (Tile::token(i) >= count || row >= rows) continue;
    out[(static_cast<int64_t>(first_token + Tile::token(i)) * heads + head) * rows + row] = sums[i];
  }
}

}  // namespace LANE_NAMESPACE
