// Products of repacked float weights and the vectors of several tokens (sm_90 and up):
//
//   batched_product<L, Columns>(out, weights, x, bias, residual, rows, tokens, ring)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   batched_gated_product<L, Columns>(out, gate, up, x, gelu, rows, tokens, ring)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a float repacked layout; x: the vectors n(x[t]) as float_vectors makes them. bias and residual may be null.
// Grid, threads, shared bytes and ring: batched_geometry. The weights are read once for eight tokens.
//
// The bits are streamed_product's: a lane adds a block's 32 products in the columns' order, the lanes' sums meet as a
// tree (partners 16, 8, 4, 2, 1 apart), and slices in their order.
//
// Each warp streams its rows through a ring of its own, as in ops/streamed_product.cuh. The vectors are too many for
// registers: a slice of them lies in shared memory, the next on its way, and what is loaded serves four rows.
//
// Dependent launches: as in ops/streamed_product.cuh.
#pragma once
#include "ops/batched_geometry.h"
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

template <class Layout, int ColumnCount, int MatrixCount>
struct BatchedShape {
  using L = Layout;
  static constexpr int kColumns = ColumnCount, kMatrices = MatrixCount;
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kMatrixRows = kBatchedRows / kMatrices;  // of a step
  static constexpr int kSlotBytes = batched_slot_bytes(L::kBytes256, kColumns);
  static constexpr int kSliceBytes = float_slice_bytes(kColumns), kGroupBytes = float_group_bytes(kColumns);
  static_assert(L::kFloat, "weights that take float activations");

  static __device__ __forceinline__ int blocks(int slice) {
    return kSlices.full == kSlices.last || slice < kSlices.count - 1 ? kSlices.full : kSlices.last;
  }
};

struct BatchedTask {
  const uint8_t *weights, *up, *x;
  int rows, tokens, ring;
};

/// The steps of this block: [first, end) of the matrix's.
struct BatchedSteps {
  int first, end;
};
template <class S>
__device__ __forceinline__ BatchedSteps batched_steps(int rows) {
  const int64_t steps = (rows + S::kMatrixRows - 1) / S::kMatrixRows;
  return {static_cast<int>(steps * blockIdx.x / gridDim.x), static_cast<int>(steps * (blockIdx.x + 1) / gridDim.x)};
}

/// Where a warp's copies stand: its steps of a slice, then those of the next.
template <class S>
struct BatchedCopies {
  uint8_t* slots;
  CopyBarrier* barriers;
  BatchedSteps steps;  // every kBatchedWarps-th of them is the warp's
  int slice, step, slot;

  /// Asks for the next step's rows: by one lane.
  __device__ __forceinline__ void ask(const BatchedTask& task) {
    if (step >= steps.end) step = steps.first, slice++;
    if (slice >= S::kSlices.count || step >= steps.end) return;
    const int bytes = slice_row_bytes(S::L::kBytes256, S::blocks(slice)), first = step * S::kMatrixRows;
    const auto size = static_cast<uint32_t>(min(S::kMatrixRows, task.rows - first) * bytes);
    const size_t from = slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, slice) +
                        size_t(first) * size_t(bytes);
    expect_copies(barriers + slot, size * S::kMatrices);
    bulk_copy(slots + slot * S::kSlotBytes, task.weights + from, size, barriers + slot);
    if (S::kMatrices == 2)
      bulk_copy(slots + slot * S::kSlotBytes + S::kMatrixRows * bytes, task.up + from, size, barriers + slot);
    step += kBatchedWarps;
    if (++slot == task.ring) slot = 0;
  }
};

/// The lane's share of a step: sums[r][t] over block `block` of the four rows and eight tokens.
template <class S>
__device__ __forceinline__ void add_rows(float (&sums)[kBatchedRows][kTokenGroup], const uint8_t* rows, int row_bytes,
                                         int blocks, int block, const uint8_t* vectors) {
  LANE_UNROLL
  for (int plane = 0; plane < 4; plane++) {
    float w[kBatchedRows][8];
    LANE_UNROLL
    for (int r = 0; r < kBatchedRows; r++)
      S::L::unpack(load_as<uint4>(rows + r * row_bytes + 16 * (plane * blocks + block)), w[r]);
    LANE_UNROLL
    for (int t = 0; t < kTokenGroup; t++) {
      const uint8_t* from = vectors + 128 * S::kSlices.full * t + 16 * (2 * plane * S::kSlices.full + block);
      const float4 u = load_as<float4>(from), v = load_as<float4>(from + 16 * S::kSlices.full);
      const float x[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
      LANE_UNROLL
      for (int r = 0; r < kBatchedRows; r++) {
        LANE_UNROLL
        for (int i = 0; i < 8; i++) sums[r][t] = fmaf(w[r][i], x[i], sums[r][t]);
      }
    }
  }
}

/// Adds 32 values over the lanes, each as sum_row does; value l ends in lane l.
__device__ __forceinline__ float sum_32_rows(float (&v)[32], int lane) {
  LANE_UNROLL
  for (int apart = 16; apart; apart >>= 1) {
    const bool second = lane & apart;
    LANE_UNROLL
    for (int i = 0; i < 16; i++) {
      if (i >= apart) continue;
      const float given = second ? v[i] : v[i + apart];
      v[i] = (second ? v[i + apart] : v[i]) + __shfl_xor_sync(~0u, given, apart);
    }
  }
  return v[0];
}

/// Lane l's sum over a slice: of row l / 8 and token l % 8.
template <class S>
__device__ __forceinline__ float sum_step(const uint8_t* rows, int blocks, const uint8_t* vectors, int lane) {
  float sums[kBatchedRows][kTokenGroup] = {};
  // Lanes beyond the slice do its last block again, for nothing.
  const bool inside = lane < blocks;
  add_rows<S>(sums, rows, slice_row_bytes(S::L::kBytes256, blocks), blocks, inside ? lane : blocks - 1, vectors);
  float v[32];
  LANE_UNROLL
  for (int i = 0; i < 32; i++) v[i] = inside ? sums[i / kTokenGroup][i % kTokenGroup] : 0.f;
  return sum_32_rows(v, lane);
}

/// What lane l's `total` becomes: row l / 8 of the step and token l % 8; of a gated product, row l / 8 % 2, the gate's
/// in the lower lanes.
template <class S>
__device__ __forceinline__ void store_step(const BatchedTask& task, const StreamedResult& result, float total,
                                           float factor, int step, int lane) {
  float v = __fmul_rn(total, factor);
  if (S::kMatrices == 2) {
    const float other = __shfl_xor_sync(~0u, v, 16);
    v = __fmul_rn(gate_activation(v, result.gelu), other);
  }
  const int row = step * S::kMatrixRows + lane / kTokenGroup;
  const int token = static_cast<int>(blockIdx.y) * kTokenGroup + lane % kTokenGroup;
  if (lane >= S::kMatrixRows * kTokenGroup || row >= task.rows || token >= task.tokens) return;
  const int64_t place = static_cast<int64_t>(token) * task.rows + row;
  if (result.bias) v += __ldg(result.bias + row);
  if (result.residual) v += __ldcg(result.residual + place);
  result.out[place] = v;
}

/// Asks for a slice of the eight tokens' vectors: by one thread.
template <class S>
__device__ __forceinline__ void copy_float_slice(uint8_t* vectors, const uint8_t* group, int slice,
                                                 CopyBarrier* barriers) {
  if (slice >= S::kSlices.count) return;
  expect_copies(barriers + slice % 2, S::kSliceBytes);
  bulk_copy(vectors + slice % 2 * S::kSliceBytes, group + slice * S::kSliceBytes, S::kSliceBytes, barriers + slice % 2);
}

template <class S>
__device__ __forceinline__ void batched_block(const BatchedTask& task, const StreamedResult& result) {
  __shared__ CopyBarrier ring_barriers[kBatchedWarps * kBatchedMaxRing], vector_barriers[2];
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const BatchedSteps steps = batched_steps<S>(task.rows);
  uint8_t* vectors = shared + kBatchedWarps * task.ring * S::kSlotBytes;
  auto* totals = reinterpret_cast<float*>(vectors + 2 * S::kSliceBytes);
  const uint8_t* group = task.x + static_cast<int64_t>(blockIdx.y) * S::kGroupBytes;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBatchedWarps * kBatchedMaxRing; i++) init_copy_barrier(ring_barriers + i);
    for (int i = 0; i < 2; i++) init_copy_barrier(vector_barriers + i);
    publish_copy_barriers();
  }
  __syncthreads();
  const BatchedSteps own{steps.first + warp, steps.end};
  BatchedCopies<S> copies{
      shared + warp * task.ring * S::kSlotBytes, ring_barriers + warp * kBatchedMaxRing, own, 0, own.first, 0};
  if (lane == 0)
    for (int i = 0; i < task.ring; i++) copies.ask(task);
  await_producer();
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; i++) copy_float_slice<S>(vectors, group, i, vector_barriers);
  __syncthreads();  // for portable copies, which nobody else waits for

  const float factor =
      __ldcg(reinterpret_cast<const float*>(group + S::kGroupBytes) - kTokenGroup + lane % kTokenGroup);
  int slot = 0;
  uint32_t parity = 0;
  LANE_KEEP_LOOP
  for (int slice = 0; slice < S::kSlices.count; slice++) {
    wait_copy(vector_barriers + slice % 2, slice / 2 & 1);
    LANE_KEEP_LOOP
    for (int step = own.first; step < own.end; step += kBatchedWarps) {
      wait_copy(copies.barriers + slot, parity);
      const float sum = sum_step<S>(copies.slots + slot * S::kSlotBytes, S::blocks(slice),
                                    vectors + slice % 2 * S::kSliceBytes, lane);
      __syncwarp();
      if (lane == 0) copies.ask(task);
      __syncwarp();
      if (++slot == task.ring) slot = 0, parity ^= 1;
      float& total = totals[(step - steps.first) * 32 + lane];
      total = (slice ? total : 0.f) + sum;
      if (slice == S::kSlices.count - 1) store_step<S>(task, result, total, factor, step, lane);
    }
    __syncthreads();
    if (threadIdx.x == 0) copy_float_slice<S>(vectors, group, slice + 2, vector_barriers);
  }
}

template <class L, int Columns>
__global__ __launch_bounds__(32 * kBatchedWarps, 1) void batched_product(float* out, const uint8_t* weights,
                                                                         const uint8_t* x, const float* bias,
                                                                         const float* residual, int rows, int tokens,
                                                                         int ring) {
  admit_consumer();
  batched_block<BatchedShape<L, Columns, 1>>({weights, nullptr, x, rows, tokens, ring}, {out, bias, residual, 0});
}

template <class L, int Columns>
__global__ __launch_bounds__(32 * kBatchedWarps,
                             1) void batched_gated_product(float* out, const uint8_t* gate, const uint8_t* up,
                                                           const uint8_t* x, int gelu, int rows, int tokens, int ring) {
  admit_consumer();
  batched_block<BatchedShape<L, Columns, 2>>({gate, up, x, rows, tokens, ring}, {out, nullptr, nullptr, gelu});
}

}  // namespace LANE_NAMESPACE
