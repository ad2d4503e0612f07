// A product and the products of its result in one launch (sm_90 and up), for one token: the output projection with gate
// and up, the down projection with the next layer's q, k and v.
//
//   chained_gated_product<First, Columns, Words, L, NextColumns, NextWords, SlotRows>
//       y = W x + bias + residual; out = a(gate n(y)) * (up n(y))
//   chained_products<First, Columns, Words, L0, L1, L2, NextColumns, NextWords, SlotRows>
//       y = W x + bias + residual; out_i = W_i n(y) + bias_i
//
// What they compute, to the bit, is streamed_product of x followed by streamed_gated_product or streamed_products of y
// (ops/streamed_product.cuh). y is [NextColumns], and also `link`, where the blocks publish it to each other
// (base/meeting.cuh); `armed` is the link of the chained launch before this one, which all have read: it becomes +0.
// Geometry: ops/chained_geometry.h, of which `layout` names what the kernel needs.
//
// Beside a launch it saves the start of a ring: a warp's ring goes on with the second stage's rows where the first's
// end, so that they arrive while y is made.
#pragma once
#include "base/meeting.cuh"
#include "ops/chained_geometry.h"
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

/// What a ring is filled from: the rest of a warp's rows in one stage.
struct RingSource {
  const uint8_t* at;
  uint32_t left, slot_bytes;
};

template <int Warps>
struct ChainedStatic {
  CopyBarrier barrier[Warps * kStreamedMaxRing];
  float squares[Warps];
  RingSource then[Warps];  // the second stage's rows, until the ring takes them: lane 0's own
};

/// A ring that two stages share. Lane 0 keeps it filled; all lanes count its slots.
struct ChainedFeed {
  int slot = 0;
  uint32_t parity = 0;
  RingSource now;
  RingSource* then;
  uint32_t slot_stride;

  __device__ __forceinline__ void start(const StreamedTask&, const StreamedWarp&, uint32_t, uint32_t) {}
  __device__ __forceinline__ uint32_t stride() const { return slot_stride; }
  __device__ __forceinline__ void refill(int lane, uint8_t* memory, CopyBarrier* barrier) {
    if (lane) return;
    if (now.left == 0) now = *then, then->left = 0;
    const uint32_t bytes = min(now.slot_bytes, now.left);
    if (bytes) bulk_copy_once(memory, now.at, bytes, barrier);
    now.at += bytes, now.left -= bytes;
  }
};

/// Both stages' parts of shared memory, and where the ring's slots lie.
struct ChainedMemory {
  uint8_t *ring, *vectors;
  float *first_sums, *second_sums;
};

template <class S>
__device__ __forceinline__ StreamedWarp chained_warp(const StreamedTask& task, const ChainedMemory& memory,
                                                     CopyBarrier* barriers, int slot_bytes) {
  StreamedWarp w = streamed_warp<S>(task, memory.ring, barriers);
  w.ring = memory.ring + w.warp * task.ring * slot_bytes;
  return w;
}
template <class S>
__device__ __forceinline__ RingSource rows_of(const StreamedWarp& w) {
  const bool works = w.slice < S::kSlices.count;
  return {w.source, works ? static_cast<uint32_t>(w.end - w.begin) * w.row_bytes : 0, S::kSlotRows * w.row_bytes};
}

/// The ring's first copies: by lane 0 alone.
__device__ __forceinline__ void start_chained_ring(ChainedFeed& feed, const StreamedWarp& w, int ring) {
  LANE_KEEP_LOOP
  for (int i = 0; i < ring; i++) init_copy_barrier(w.barrier + i);
  publish_copy_barriers();
  LANE_KEEP_LOOP
  for (int i = 0; i < ring; i++) feed.refill(0, w.ring + i * feed.slot_stride, w.barrier + i);
}

/// One warp's rows of one stage: `read` brings the vector's pieces.
template <class S, class Read>
__device__ __forceinline__ void work_on_stage(const StreamedTask& task, const StreamedInput& in, const StreamedWarp& w,
                                              const ChainedMemory& memory, float* sums, float* squares,
                                              ChainedFeed& feed, Read read) {
  if (w.slice >= S::kSlices.count) return skip_group_barrier();
  VectorPieces<S::kSlices.full, S::kTeam> norm{}, x{};
  const int first_column = w.slice * S::kSlices.full * kBlockColumns, pieces = w.blocks / 4;
  const bool normed = S::kNorms && in.norm;
  if (normed) norm.read(in.norm + first_column, pieces, w.member, w.lane, [](const float4* p) { return __ldg(p); });
  read(x, in.x + first_column, pieces);
  uint8_t* vector = memory.vectors + w.slice * S::kVectorBytes;
  float lane_squares = make_vector<S>(x, norm, normed, w, S::top(task.layout), vector);
  if (normed) {
    lane_squares = sum_row(lane_squares);
    if (w.lane == 0) squares[w.warp] = lane_squares;
  }
  if (w.begin < w.end) wait_copy(w.barrier + feed.slot, feed.parity);
  group_barrier<S::kTeam * 32>(w.slice);
  stream_rows_of_layout<S>(task, w, vector, sums + first_sum<S>(task, w), feed);
}

struct ChainedLink {
  float *link, *armed;
};

/// The first stage: y's rows of this block, stored and published.
template <class S>
__device__ __forceinline__ void first_stage(const StreamedTask& task, const StreamedInput& in,
                                            const StreamedResult& result, const ChainedLink& link,
                                            const StreamedWarp& w, const ChainedMemory& memory, float* squares,
                                            ChainedFeed& feed) {
  await_producer();
  const int own = static_cast<int>(threadIdx.x);
  LANE_KEEP_LOOP
  for (int i = own; i < task.count; i += S::kWarps * 32) link.armed[task.first + i] = 0.f;
  const float own_residual = result.residual && own < task.count ? __ldcg(result.residual + task.first + own) : 0.f;
  work_on_stage<S>(task, in, w, memory, memory.first_sums, squares, feed, [&](auto& x, const float* at, int pieces) {
    x.read(at, pieces, w.member, w.lane, [](const float4* p) { return __ldcg(p); });
  });
  __syncthreads();
  store_results<S>(task, in, result, memory.first_sums, squares, own_residual,
                   [&](float v, int row) { publish(link.link + row, v); });
}

/// A block's work: rows `first` of y, then rows `second` of what reads it.
template <class S, class Next>
__device__ __forceinline__ void chained_block(const StreamedTask& first, const StreamedInput& in,
                                              const StreamedResult& y, const ChainedLink& link,
                                              const StreamedTask& second, const StreamedInput& next_in,
                                              const StreamedResult& out, int slot_bytes, int vector_bytes, int sums) {
  static_assert(S::kWarps == Next::kWarps, "a block has the same warps in both stages");
  __shared__ ChainedStatic<S::kWarps> st;
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  ChainedMemory memory;
  memory.ring = shared, memory.vectors = shared + S::kWarps * first.ring * slot_bytes;
  memory.first_sums = reinterpret_cast<float*>(memory.vectors + vector_bytes);
  memory.second_sums = memory.first_sums + sums;
  ChainedFeed feed;
  feed.slot_stride = static_cast<uint32_t>(slot_bytes), feed.then = st.then + (threadIdx.x >> 5);
  {
    const StreamedWarp w = chained_warp<S>(first, memory, st.barrier, slot_bytes);
    feed.now = ahead_of_meeting() ? rows_of<S>(w) : RingSource{nullptr, 0, 0};
    if (w.lane == 0) {
      *feed.then = rows_of<Next>(chained_warp<Next>(second, memory, st.barrier, slot_bytes));
      start_chained_ring(feed, w, first.ring);
    }
    __syncwarp();
    if (ahead_of_meeting()) first_stage<S>(first, in, y, link, w, memory, st.squares, feed);
  }
  if (!meet()) return;
  const StreamedWarp w = chained_warp<Next>(second, memory, st.barrier, slot_bytes);
  work_on_stage<Next>(second, next_in, w, memory, memory.second_sums, st.squares, feed,
                      [&](auto& x, const float* at, int pieces) { x.await(at, pieces, w.member, w.lane); });
  __syncthreads();
  store_results<Next>(second, next_in, out, memory.second_sums, st.squares, 0.f, SeeNothing{});
}

template <class First, int Columns, int Words, class L, int NextColumns, int NextWords, int SlotRows>
__global__ __launch_bounds__(
    streamed_threads(Columns, false),
    streamed_residents(Columns, false)) void chained_gated_product(float* out, float* y, float* link, float* armed,
                                                                   const uint8_t* weights, const float* x,
                                                                   const float* bias, const float* residual,
                                                                   int y_rows_per_block, const uint8_t* gate,
                                                                   const uint8_t* up, const float* norm, float epsilon,
                                                                   int gelu, int rows, int rows_per_block, int ring,
                                                                   int slot_bytes, int vector_bytes, int sums) {
  admit_consumer();
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  chained_block<StreamedShape<Columns, Words, 1, First, First, First, SlotRows>,
                StreamedShape<NextColumns, NextWords, 2, L, L, L, SlotRows>>(
      streamed_task(weights, nullptr, 0, NextColumns, y_rows_per_block, ring, block, blocks), {x, nullptr, 0.f},
      {y, bias, residual, 0}, {link, armed}, streamed_task(gate, up, 0, rows, rows_per_block, ring, block, blocks),
      {link, norm, epsilon}, {out, nullptr, nullptr, gelu}, slot_bytes, vector_bytes, sums);
}

template <class First, int Columns, int Words, class L0, class L1, class L2, int NextColumns, int NextWords,
          int SlotRows>
__global__
__launch_bounds__(streamed_threads(Columns, false), streamed_residents(Columns, false)) void chained_products(
    float* out0, float* out1, float* out2, float* y, float* link, float* armed, const uint8_t* weights, const float* x,
    const float* bias, const float* residual, int y_rows_per_block, const uint8_t* weights0, const uint8_t* weights1,
    const uint8_t* weights2, const float* norm, float epsilon, const float* bias0, const float* bias1,
    const float* bias2, int rows0, int rows1, int rows2, int blocks0, int blocks1, int blocks2, int rows_per_block0,
    int rows_per_block1, int rows_per_block2, int ring, int slot_bytes, int vector_bytes, int sums) {
  admit_consumer();
  const StreamedTask first = streamed_task(weights, nullptr, 0, NextColumns, y_rows_per_block, ring,
                                           static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  const PartTask next = part_task({out0, weights0, bias0, rows0, blocks0, rows_per_block0, ring},
                                  {out1, weights1, bias1, rows1, blocks1, rows_per_block1, ring},
                                  {out2, weights2, bias2, rows2, blocks2, rows_per_block2, ring});
  chained_block<StreamedShape<Columns, Words, 1, First, First, First, SlotRows>,
                StreamedShape<NextColumns, NextWords, 1, L0, L1, L2, SlotRows>>(
      first, {x, nullptr, 0.f}, {y, bias, residual, 0}, {link, armed}, next.task, {link, norm, epsilon}, next.result,
      slot_bytes, vector_bytes, sums);
}

}  // namespace LANE_NAMESPACE
