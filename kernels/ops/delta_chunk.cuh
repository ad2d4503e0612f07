// The gated delta rule over a chunk of tokens, a stretch of kStretch at a time.
//
// note [delta rule in stretches]
// Within a stretch let D_ij = d_{j+1} … d_i for j <= i and 0 above, and G_i = d_0 … d_i. With M the memory before the
// stretch, row by row the rule is M_i = d_i M_{i-1} + c_i k_i^T with c_i = b_i (v_i - d_i M_{i-1} k_i). Put M_{i-1} in
// its place and the changes c of all tokens are the solution of one triangular system:
//   c = (I + A)^-1 diag(b) (v - diag(G) K M^T),   A_ij = b_i D_ij k_i · k_j for j < i
//   out = diag(G) Q M^T + P c,                     P_ij = D_ij q_i · k_j for j <= i
//   M' = G_last M + sum over j of D_last,j c_j k_j^T
// (the WY form of a product of Householder-like steps). What depends on no state, solve = (I + A)^-1 diag(b), P, G and
// D_last, is made for all stretches at once by delta_factors; delta_chunk walks through the stretches. D is a product
// of decays and never a quotient, so that none is too small for it. All sums are float32, like the recurrence's.
#pragma once
#include "base/launch.cuh"
#include "base/warp.cuh"
#include "ops/delta_chunk_geometry.h"

namespace LANE_NAMESPACE {

/// What a stretch's tokens do to each other in one head, rows one after the other.
struct DeltaFactors {
  float solve[kStretch][kStretch], read[kStretch][kStretch];
  float kept[kStretch], left[kStretch];  // G_i, and D_last,j
};
static_assert(sizeof(DeltaFactors) == kDeltaFactors * sizeof(float), "an array of floats to the planner");

/// Heads h read key head h / (heads / groups), or h % groups where `tiled`; rows of keys are [token][groups][width].
struct KeyRows {
  const float* first;
  int64_t stride;
  __device__ __forceinline__ KeyRows(const float* x, int token, int head, int heads, int groups, int width, int tiled)
      : first(x + (int64_t(token) * groups + (tiled ? head % groups : head / (heads / groups))) * width),
        stride(int64_t(groups) * width) {}
  __device__ __forceinline__ float4 four(int row, int column) const {
    return *reinterpret_cast<const float4*>(first + row * stride + column);
  }
};

__device__ __forceinline__ float dot_of_four(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}
__device__ __forceinline__ float4 four_at(const float* x) { return *reinterpret_cast<const float4*>(x); }
__device__ __forceinline__ void store_four(float* to, float4 v) { *reinterpret_cast<float4*>(to) = v; }

/// The four results of a thread, of kStretch rows by 32 columns: rows row and row + 1, columns column and column + 16.
struct DeltaTile {
  int row, column;
  __device__ __forceinline__ DeltaTile() : row(2 * (2 * warp_index() + lane_index() / 16)), column(lane_index() % 16) {}
};

/// Sums over a tile: of rows a (and of rows b) with rows c, `columns` long, a row every `stride` floats.
__device__ __forceinline__ void add_tile_dots(float (&of_a)[2][2], float (&of_b)[2][2], const float* a, const float* b,
                                              const float* c, DeltaTile tile, int columns, int stride) {
  for (int i = 0; i < columns; i += 4) {
    const float4 c0 = four_at(c + tile.column * stride + i), c1 = four_at(c + (tile.column + 16) * stride + i);
    LANE_UNROLL
    for (int r = 0; r < 2; r++) {
      const float4 from_a = four_at(a + (tile.row + r) * stride + i), from_b = four_at(b + (tile.row + r) * stride + i);
      of_a[r][0] = dot_of_four(from_a, c0, of_a[r][0]);
      of_a[r][1] = dot_of_four(from_a, c1, of_a[r][1]);
      of_b[r][0] = dot_of_four(from_b, c0, of_b[r][0]);
      of_b[r][1] = dot_of_four(from_b, c1, of_b[r][1]);
    }
  }
}

/// delta_factors' shared memory; keys and queries a slab of 32 columns at a time.
struct DeltaFactorsShared {
  static constexpr int kSlab = 32, kStride = kSlab + kDeltaPadding;
  float keys[kStretch][kStride], queries[kStretch][kStride];
  float between[kStretch][kStretch];   // D
  float coupling[kStretch][kStretch];  // A
};

static_assert(sizeof(DeltaFactorsShared) == kDeltaFactorsSharedBytes, "as the planner asks for");

/// A warp makes D, a lane a column.
__device__ inline void decays_between(DeltaFactorsShared& shared, DeltaFactors& to, const float* d, int heads) {
  const int column = lane_index();
  float product = 1.0f;
  for (int i = 0; i < kStretch; i++) {
    if (i > column) product *= d[int64_t(i) * heads];
    shared.between[i][column] = i < column ? 0.0f : product;
    if (column == 0) to.kept[i] = product * d[0];
  }
  to.left[column] = product;
}

/// A warp solves (I + A) T = diag(b) by forward substitution, a lane a column of T.
__device__ inline void solve_changes(const DeltaFactorsShared& shared, DeltaFactors& to, const float* b, int heads) {
  const int column = lane_index();
  const float strength = b[int64_t(column) * heads];
  float t[kStretch];
  LANE_UNROLL
  for (int i = 0; i < kStretch; i++) {
    float sum = i == column ? strength : 0.0f;
    LANE_UNROLL
    for (int j = 0; j < i; j++) sum = fmaf(-shared.coupling[i][j], t[j], sum);
    t[i] = sum;
    to.solve[i][column] = sum;
  }
}

/// factors: [stretch][head] of note [delta rule in stretches]. q and k are [token][groups][width], d and b
/// [token][heads]; width is a multiple of 32. Grid: (heads, stretches) of kDeltaChunkThreads.
__global__ void __launch_bounds__(kDeltaChunkThreads)
    delta_factors(float* factors, const float* q, const float* k, const float* d, const float* b, int heads, int groups,
                  int width, int tiled) {
  follow_producer();
  LANE_DYNAMIC_SHARED(DeltaFactorsShared, shared);
  constexpr int kSlab = DeltaFactorsShared::kSlab;
  const int head = static_cast<int>(blockIdx.x), token = static_cast<int>(blockIdx.y) * kStretch;
  DeltaFactors& to = reinterpret_cast<DeltaFactors*>(factors)[int64_t(blockIdx.y) * heads + head];
  const float* strengths = b + int64_t(token) * heads + head;
  if (warp_index() == 0) decays_between(*shared, to, d + int64_t(token) * heads + head, heads);

  const KeyRows keys(k, token, head, heads, groups, width, tiled), queries(q, token, head, heads, groups, width, tiled);
  const DeltaTile tile;
  const int row = static_cast<int>(threadIdx.x) / (kSlab / 4), column = static_cast<int>(threadIdx.x) % (kSlab / 4) * 4;
  float key_dots[2][2] = {}, query_dots[2][2] = {};
  for (int slab = 0; slab < width; slab += kSlab) {
    __syncthreads();
    store_four(shared->keys[row] + column, keys.four(row, slab + column));
    store_four(shared->queries[row] + column, queries.four(row, slab + column));
    __syncthreads();
    add_tile_dots(key_dots, query_dots, shared->keys[0], shared->queries[0], shared->keys[0], tile, kSlab,
                  DeltaFactorsShared::kStride);
  }
  for (int r = 0; r < 2; r++) {
    const int i = tile.row + r;
    for (int c = 0; c < 2; c++) {
      const int j = tile.column + 16 * c;
      const float between = shared->between[i][j];
      shared->coupling[i][j] = j < i ? strengths[int64_t(i) * heads] * between * key_dots[r][c] : 0.0f;
      to.read[i][j] = between * query_dots[r][c];
    }
  }
  __syncthreads();
  if (warp_index() == 0) solve_changes(*shared, to, strengths, heads);
}

/// delta_chunk's shared memory; rows of keys, queries and memory have `stride` floats.
struct DeltaChunkShared {
  int stride;
  float *keys, *queries, *memory;    // [kStretch], [kStretch] and [kDeltaValues] rows
  float *wanted, *change, *lasting;  // [kStretch][kDeltaValues]: v - G K M^T; c; D_last c
  DeltaFactors* factors;

  __device__ __forceinline__ DeltaChunkShared(float* shared, int width)
      : stride(width + kDeltaPadding),
        keys(shared),
        queries(keys + kStretch * stride),
        memory(queries + kStretch * stride),
        wanted(memory + kDeltaValues * stride),
        change(wanted + kStretch * kDeltaValues),
        lasting(change + kStretch * kDeltaValues),
        factors(reinterpret_cast<DeltaFactors*>(lasting + kStretch * kDeltaValues)) {}
};

/// Sums over a tile of a stretch's factors with a value a token.
__device__ __forceinline__ void add_factors(float (&sums)[2][2], const float (&factors)[kStretch][kStretch],
                                            const float* values, DeltaTile tile) {
  for (int j = 0; j < kStretch; j++) {
    const float v0 = values[j * kDeltaValues + tile.column], v1 = values[j * kDeltaValues + tile.column + 16];
    LANE_UNROLL
    for (int r = 0; r < 2; r++) {
      const float factor = factors[tile.row + r][j];
      sums[r][0] = fmaf(factor, v0, sums[r][0]);
      sums[r][1] = fmaf(factor, v1, sums[r][1]);
    }
  }
}

/// M' of note [delta rule in stretches]: a warp has four values, a lane four keys at a time.
__device__ __forceinline__ void update_memory(const DeltaChunkShared& shared, int width) {
  const float kept = shared.factors->kept[kStretch - 1];
  const int value = 4 * warp_index();
  for (int key = 4 * lane_index(); key < width; key += 4 * kWarpLanes) {
    float4 sum[4];
    LANE_UNROLL
    for (int i = 0; i < 4; i++) {
      const float4 old = four_at(shared.memory + (value + i) * shared.stride + key);
      sum[i] = make_float4(kept * old.x, kept * old.y, kept * old.z, kept * old.w);
    }
    for (int j = 0; j < kStretch; j++) {
      const float4 k = four_at(shared.keys + j * shared.stride + key);
      const float4 by = four_at(shared.lasting + j * kDeltaValues + value);
      const float change[4] = {by.x, by.y, by.z, by.w};
      LANE_UNROLL
      for (int i = 0; i < 4; i++) {
        sum[i].x = fmaf(change[i], k.x, sum[i].x);
        sum[i].y = fmaf(change[i], k.y, sum[i].y);
        sum[i].z = fmaf(change[i], k.z, sum[i].z);
        sum[i].w = fmaf(change[i], k.w, sum[i].w);
      }
    }
    LANE_UNROLL
    for (int i = 0; i < 4; i++) store_four(shared.memory + (value + i) * shared.stride + key, sum[i]);
  }
}

/// One stretch: `v` and `out` point to the block's first value of its first token, rows every `stride` floats. The
/// keys, the queries and the factors lie in shared memory.
__device__ inline void delta_stretch(const DeltaChunkShared& shared, float* out, const float* v, int64_t stride,
                                     int width) {
  const DeltaTile tile;
  const DeltaFactors& factors = *shared.factors;
  float of_keys[2][2] = {}, sums[2][2] = {}, change[2][2] = {};
  add_tile_dots(of_keys, sums, shared.keys, shared.queries, shared.memory, tile, width, shared.stride);
  for (int r = 0; r < 2; r++) {
    const float kept = factors.kept[tile.row + r];
    for (int c = 0; c < 2; c++) {
      const int column = tile.column + 16 * c;
      const float value = v[(tile.row + r) * stride + column];
      shared.wanted[(tile.row + r) * kDeltaValues + column] = fmaf(-kept, of_keys[r][c], value);
      sums[r][c] *= kept;
    }
  }
  __syncthreads();
  add_factors(change, factors.solve, shared.wanted, tile);
  for (int r = 0; r < 2; r++) {
    for (int c = 0; c < 2; c++) {
      const int at = (tile.row + r) * kDeltaValues + tile.column + 16 * c;
      shared.change[at] = change[r][c];
      shared.lasting[at] = factors.left[tile.row + r] * change[r][c];
    }
  }
  __syncthreads();
  add_factors(sums, factors.read, shared.change, tile);
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) out[(tile.row + r) * stride + tile.column + 16 * c] = sums[r][c];
  update_memory(shared, width);
}

/// out[token][h][j] = the reading after that token's update, and M moves on by all `rows` tokens, a multiple of
/// kStretch, of the one sequence at slots[0]. M, v and out are as delta_rule's; `factors` are delta_factors'. Grid:
/// (width / kDeltaValues, heads) of kDeltaChunkThreads; dynamic shared memory as delta_chunk_shared_bytes says.
__global__ void __launch_bounds__(kDeltaChunkThreads)
    delta_chunk(float* out, uint8_t* state, const float* q, const float* k, const float* v, const float* factors,
                const int* slots, int64_t state_stride, int rows, int heads, int groups, int width, int tiled) {
  follow_producer();
  LANE_DYNAMIC_SHARED(float, floats);
  const DeltaChunkShared shared(floats, width);
  const int head = static_cast<int>(blockIdx.y), value = head * width + static_cast<int>(blockIdx.x) * kDeltaValues;
  float* memory = reinterpret_cast<float*>(state + slots[0] * state_stride) + int64_t(value) * width;
  const int64_t stride = int64_t(heads) * width;
  const int in_row = width / 4;
  for (int i = threadIdx.x; i < kDeltaValues * in_row; i += kDeltaChunkThreads)
    store_four(shared.memory + i / in_row * shared.stride + i % in_row * 4, four_at(memory + 4 * i));

  for (int token = 0; token < rows; token += kStretch) {
    const KeyRows keys(k, token, head, heads, groups, width, tiled),
        queries(q, token, head, heads, groups, width, tiled);
    const float* made = factors + (int64_t(token / kStretch) * heads + head) * kDeltaFactors;
    __syncthreads();  // the stretch before has been read
    for (int i = threadIdx.x; i < kStretch * in_row; i += kDeltaChunkThreads) {
      const int row = i / in_row, column = i % in_row * 4;
      store_four(shared.keys + row * shared.stride + column, keys.four(row, column));
      store_four(shared.queries + row * shared.stride + column, queries.four(row, column));
    }
    for (int i = threadIdx.x; i < kDeltaFactors / 4; i += kDeltaChunkThreads)
      store_four(reinterpret_cast<float*>(shared.factors) + 4 * i, four_at(made + 4 * i));
    __syncthreads();
    delta_stretch(shared, out + token * stride + value, v + token * stride + value, stride, width);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kDeltaValues * in_row; i += kDeltaChunkThreads)
    store_four(memory + 4 * i, four_at(shared.memory + i / in_row * shared.stride + i % in_row * 4));
}

}  // namespace LANE_NAMESPACE
