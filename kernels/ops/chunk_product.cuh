// Products of repacked matrices and the vectors of a chunk's many tokens, on Hopper's tensor cores (sm_90a):
//
//   chunk_product<L, Columns, Words, Tokens, Groups, Splits>(out, weights, x, bias, residual, rows, tokens)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   chunk_products<L0, L1, L2, Columns, Words, Tokens, Groups, Splits>(
//       out0, out1, out2, weights0, weights1, weights2, x, bias0, bias1, bias2, rows0, rows1, rows2, tokens)
//       up to three such products of the same vectors; of one that is not there, rows are 0
//   chunk_gated_product<L, Columns, Words, Tokens, Groups, Splits>(out, gate, up, x, gelu, rows, tokens)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a quantized repacked layout; x: the vectors n(x[t]) as half_vectors makes them. bias and residual may be null.
// Grid, threads, shared bytes, Tokens, Groups and Splits: chunk_geometry.
//
// Weights enter as exact integers, note [exact halves], vectors as two halves: so a product is as accurate as floats
// make it. Sums are float, of the tensor core over a span's columns, then of the spans in their order; with two Splits
// of the even steps, of the odd ones, and of both. It is not the order of ops/tiled_product.cuh: a chunk's bits are not
// a decode step's.
//
// note [roles]
// Of a block's warps, eight multiply, four of them 64 rows each or, with two Splits, 64 rows' even or odd steps; three
// copy packed weights into shared memory, a window of each row at a time, and one has the vectors copied, step by step.
// A multiplying lane unpacks its own fragments of the next step while the tensor cores have this one's: unpacked
// weights never lie in shared memory, whose bandwidth bounds such a product. Weights need no vector, so they are copied
// before the launch's producer has ended.
#pragma once
#include "base/group_barrier.cuh"
#include "base/keep_loop.h"
#include "base/role_ring.cuh"
#include "layout/half_weights.cuh"
#include "ops/chunk_geometry.h"
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

template <class Layout, int ColumnCount, int WordCount, int TokenCount, int GroupCount, int SplitCount, int MatrixCount>
struct HalvesShape {
  using L = Layout;
  static constexpr int kColumns = ColumnCount, kWords = WordCount, kTokens = TokenCount, kGroups = GroupCount;
  static constexpr int kSplits = SplitCount, kMatrices = MatrixCount, kTiles = kTokens / kChunkTokens,
                       kSums = kTokens / 2;
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kSteps = kColumns / kChunkColumns, kBlocks = kChunkColumns / kBlockColumns;
  static constexpr int kWindows = chunk_windows(kColumns);
  static constexpr int kSpan = HalfWeights<L>::kSpan;
  static constexpr int kPieces = kSpan < kChunkColumns ? kChunkColumns / kSpan : 1;  // of a step, a factor each
  static constexpr int kTileRows = kGroups * kChunkGroupRows, kRows = kTileRows / kMatrices;  // kRows: of a matrix
  static constexpr int kRing = chunk_ring(kWords, kTokens, kGroups, L::kBytes256);
  static constexpr int kWindowSlots = chunk_window_slots(kTokens, kGroups);
  static constexpr int kRowStride = chunk_row_stride(L::kBytes256);
  static constexpr int kVectorBytes = chunk_vector_bytes(kColumns, kWords);
};

struct HalvesTask {
  const uint8_t* matrices[2];
  const uint8_t* x;
  int rows, tokens, first_row;  // the last: the block's
};

/// A tile row of a block of threads: of a gated product's sixteen rows, eight are the gate's and eight the up matrix's,
/// so that a lane has both of a result.
template <class S>
__device__ __forceinline__ int row_of_tile(int tile_row) {
  return S::kMatrices == 1 ? tile_row : tile_row / 16 * 8 + tile_row % 8;
}

/// Where everything lies in the block's shared memory.
template <class S>
struct HalvesShared {
  uint8_t* base;

  __device__ __forceinline__ uint8_t* vectors(int step) const {
    return base + step % S::kRing * chunk_slot_bytes(S::kWords, S::kTokens);
  }
  __device__ __forceinline__ uint8_t* sums(int step) const {
    return vectors(step) + S::kTiles * S::kWords * kChunkTileBytes;
  }
  /// A row's window, like a row of a slice of so many blocks.
  __device__ __forceinline__ uint8_t* row(int window, int tile_row) const {
    return base + S::kRing * chunk_slot_bytes(S::kWords, S::kTokens) +
           (window % S::kWindowSlots * S::kTileRows + tile_row) * S::kRowStride;
  }
};

/// A window of the matrix: its slice, and its first block there.
template <class S>
struct HalvesWindow {
  int slice, first;

  __device__ __forceinline__ explicit HalvesWindow(int window) {
    constexpr int kOfSlice = slice_windows(S::kSlices.full);
    slice = window / kOfSlice, first = window % kOfSlice * kChunkWindowBlocks;
  }
  __device__ __forceinline__ int of_slice() const {
    return slice == S::kSlices.count - 1 ? S::kSlices.last : S::kSlices.full;
  }
  __device__ __forceinline__ int blocks() const {
    constexpr bool kWhole = S::kSlices.full % kChunkWindowBlocks == 0 && S::kSlices.last % kChunkWindowBlocks == 0;
    return kWhole ? kChunkWindowBlocks : min(kChunkWindowBlocks, of_slice() - first);
  }
};

/// Has a slice of the block's rows on its way to the L2: they lie together there. The blocks of other tokens have the
/// same rows, so each asks for its part of them.
template <class S>
__device__ __forceinline__ void prefetch_slice(const HalvesTask& task, int slice) {
  if (slice >= S::kSlices.count) return;
  const int blocks = slice == S::kSlices.count - 1 ? S::kSlices.last : S::kSlices.full;
  const int row_bytes = slice_row_bytes(S::L::kBytes256, blocks), first = task.first_row;
  const int there = min(S::kRows, task.rows - first), askers = static_cast<int>(gridDim.x);
  const int share = (there + askers - 1) / askers, own = static_cast<int>(blockIdx.x) * share;
  if (own >= there) return;
  for (int m = 0; m < S::kMatrices; m++)
    bulk_prefetch(task.matrices[m] + slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, slice) +
                      static_cast<size_t>(first + own) * static_cast<size_t>(row_bytes),
                  static_cast<uint32_t>(min(share, there - own) * row_bytes));
}

/// The warps that copy weights.
template <class S>
struct WeightProducer {
  static constexpr int kThreads = kChunkProducers - 32;
  const HalvesTask& task;
  const HalvesShared<S>& shared;
  const WindowRing<S::kWindowSlots>& ring;
  int thread;  // of kThreads

  /// A plane of `Bytes` for 256 weights: `from` and `to` are its first bytes in the slice's first row and in the
  /// window's.
  template <int Bytes>
  __device__ __forceinline__ void copy_plane(int window, const HalvesWindow<S>& w, int before) const {
    constexpr int kUnit = Bytes % 16 ? 2 : 16;
    const int row_bytes = slice_row_bytes(S::L::kBytes256, w.of_slice()), first_row = task.first_row;
    const size_t in_row = static_cast<size_t>(before * w.of_slice() / 8 + Bytes * w.first / 8);
    const size_t slice = slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, w.slice) + in_row;
    const int bytes = Bytes * w.blocks() / 8, unit = bytes % 16 ? 2 : kUnit, units = bytes / unit;
    for (int i = thread; i < S::kTileRows * units; i += kThreads) {
      const int tile_row = i / units, at = i % units * unit;
      const int row = min(first_row + row_of_tile<S>(tile_row), task.rows - 1);
      const uint8_t* from = task.matrices[S::kMatrices == 1 ? 0 : tile_row / 8 % 2] + slice +
                            static_cast<size_t>(row) * static_cast<size_t>(row_bytes) + at;
      uint8_t* to = shared.row(window, tile_row) + before * w.blocks() / 8 + at;
      if (unit == 16)
        async_copy(to, from);
      else
        store_as(to, __ldg(reinterpret_cast<const uint16_t*>(from)));
    }
  }
  template <int Plane>
  __device__ __forceinline__ void copy_planes(int window, const HalvesWindow<S>& w, int before) const {
    constexpr int kPlanes = sizeof(S::L::kPlanes) / sizeof(int);
    if constexpr (Plane < kPlanes) {
      constexpr int kBytes = S::L::kPlanes[Plane];
      copy_plane<kBytes>(window, w, before);
      copy_planes<Plane + 1>(window, w, before + kBytes);
    }
  }
  __device__ __forceinline__ void fill(int window) const {
    if (window >= S::kWindows) return;
    const HalvesWindow<S> w(window);
    ring.await_room(window);
    if (thread == 0 && w.first == 0) prefetch_slice<S>(task, w.slice + 1);
    copy_planes<0>(window, w, 0);
    ring.publish(window);
  }
  __device__ __forceinline__ void run(const RoleRing<S::kRing>& steps) const {
    for (int window = 0; window < S::kWindowSlots - 1; window++) fill(window);
    steps.begin();
    LANE_KEEP_LOOP
    for (int step = 0; step < S::kSteps; step++) {
      const WindowBlock at = window_block(S::kSlices, S::kBlocks * step);
      if (at.at == 0) fill(at.window + S::kWindowSlots - 1);
      steps.pass();
    }
  }
};

/// The warp that has vectors copied; its first lane asks.
template <class S>
struct VectorProducer {
  const HalvesTask& task;
  const HalvesShared<S>& shared;
  const RoleRing<S::kRing>& ring;

  __device__ __forceinline__ void copy(int step) const {
    const int first = static_cast<int>(blockIdx.x) * S::kTiles;
    const int there = min(S::kTiles, (task.tokens + kChunkTokens - 1) / kChunkTokens - first);
    const WindowBlock last = window_block(S::kSlices, S::kBlocks * step + S::kBlocks - 1);
    const bool sums = S::L::kMinimums && last.at == HalvesWindow<S>(last.window).blocks() - 1;
    const uint8_t* x = task.x + static_cast<int64_t>(first) * S::kVectorBytes;
    CopyBarrier* barrier = ring.full + step % S::kRing;
    expect_copies(barrier, static_cast<uint32_t>(there * (S::kWords * kChunkTileBytes + (sums ? kChunkSumBytes : 0))));
    for (int tile = 0; tile < there; tile++, x += S::kVectorBytes) {
      LANE_UNROLL
      for (int word = 0; word < S::kWords; word++)
        bulk_copy(shared.vectors(step) + (word * S::kTiles + tile) * kChunkTileBytes,
                  x + (step * S::kWords + word) * kChunkTileBytes, kChunkTileBytes, barrier);
      if (sums)
        bulk_copy(shared.sums(step) + tile * kChunkSumBytes,
                  x + S::kSteps * S::kWords * kChunkTileBytes + last.window * kChunkSumBytes, kChunkSumBytes, barrier);
    }
  }
  __device__ __forceinline__ void run() const {
    ring.begin();
    LANE_KEEP_LOOP
    for (int step = 0; step < S::kSteps; step++) {
      if ((threadIdx.x & 31) == 0) {
        ring.await_room(step);
        copy(step);
      }
      ring.pass();
    }
  }
};

/// A lane's sums, as add_tile_product has them.
template <class S>
struct HalvesSums {
  float of[S::kSums];
  __device__ __forceinline__ void add(const float (&part)[S::kSums], float2 factors) {
    LANE_UNROLL
    for (int i = 0; i < S::kSums; i++) of[i] = fmaf(i / 2 % 2 ? factors.y : factors.x, part[i], of[i]);
  }
};

/// Where a step's weights lie: two blocks of a window.
template <class S>
struct HalvesStep {
  int window, first, blocks;
  __device__ __forceinline__ explicit HalvesStep(int step) {
    const WindowBlock at = window_block(S::kSlices, S::kBlocks * step);
    window = at.window, first = at.at, blocks = HalvesWindow<S>(window).blocks();
  }
  /// Whether it is the first or the last step of its window for the warps that multiply it.
  __device__ __forceinline__ bool begins() const { return first < S::kBlocks * S::kSplits; }
  __device__ __forceinline__ bool ends() const { return first + S::kBlocks * S::kSplits >= blocks; }
  __device__ __forceinline__ bool ends_window() const { return first + S::kBlocks == blocks; }
};

/// Four of the warps that multiply. A lane has two rows of each fragment, `tile_row` and the eighth below.
template <class S>
struct HalvesConsumer {
  using L = typename S::L;
  static constexpr int kSixteens = kChunkColumns / 16, kOfPiece = kSixteens / S::kPieces;
  const HalvesShared<S>& shared;
  const RoleRing<S::kRing>& steps;
  const WindowRing<S::kWindowSlots>& windows;
  int tile_row, c;

  __device__ __forceinline__ HalfFactors factors(const HalvesStep<S>& step, int block, int below) const {
    return HalfWeights<L>::factors(shared.row(step.window, tile_row + below), step.blocks, block);
  }
  /// The fragments of a step's sixteens of columns.
  __device__ __forceinline__ void unpack(uint4 (&a)[kSixteens], const HalvesStep<S>& step) const {
    LANE_UNROLL
    for (int i = 0; i < S::kBlocks; i++) {
      const int block = step.first + i;
      uint2 halves[2][2];  // of a row, of a word
      LANE_UNROLL
      for (int r = 0; r < 2; r++) {
        const HalvesOfCodes<L> convert(L::kScaleHeader ? factors(step, block, 8 * r).multiplier : 1);
        const uint2 codes = L::share(shared.row(step.window, tile_row + 8 * r), step.blocks, block, c);
        halves[r][0] = convert.of(codes.x), halves[r][1] = convert.of(codes.y);
      }
      LANE_UNROLL
      for (int word = 0; word < 2; word++)
        a[2 * i + word] = make_uint4(halves[0][word].x, halves[1][word].x, halves[0][word].y, halves[1][word].y);
    }
  }
  /// What the sums of the piece's span are to be multiplied by.
  __device__ __forceinline__ float2 span_factors(const HalvesStep<S>& step, int piece) const {
    const int sixteen = piece * kOfPiece, block = step.first + sixteen / 2;
    return make_float2(factors(step, block, 0).factor[sixteen % 2], factors(step, block, 8).factor[sixteen % 2]);
  }
  __device__ __forceinline__ void multiply(float (&part)[S::kSums], const uint4 (&a)[kSixteens], int step, int piece,
                                           bool begins_span) const {
    const uint8_t* vectors = shared.vectors(step);
    begin_tile_products();
    LANE_UNROLL
    for (int k = piece * kOfPiece; k < (piece + 1) * kOfPiece; k++) {
      LANE_UNROLL
      for (int word = 0; word < S::kWords; word++)
        add_fragment_product<S::kTokens>(part, a[k], vectors + word * S::kTiles * kChunkTileBytes, k,
                                         !begins_span || k > piece * kOfPiece || word > 0);
    }
    end_tile_products();
  }
  __device__ __forceinline__ uint32_t minimum_pair(const HalvesStep<S>& step, int below) const {
    const auto minimum = [&](int block) {
      return static_cast<uint32_t>(
          block < step.blocks ? __half_as_ushort(__float2half(factors(step, block, below).minimum)) : 0);
    };
    return minimum(2 * c) | minimum(2 * c + 1) << 16;
  }
  /// Subtracts the minimums of the window that ends with `step`, times the sums of their blocks' vectors.
  __device__ __forceinline__ void subtract_minimums(HalvesSums<S>& sums, float (&part)[S::kSums], int step,
                                                    const HalvesStep<S>& at) const {
    const uint32_t upper = minimum_pair(at, 0), lower = minimum_pair(at, 8);
    begin_tile_products();
    multiply_core_tile<S::kTokens>(part, make_uint4(upper, lower, upper, lower), shared.sums(step));
    end_tile_products();
    const float2 of_minimums = make_float2(factors(at, 0, 0).minimum_factor, factors(at, 0, 8).minimum_factor);
    await_tile_products<0>(part);
    sums.add(part, make_float2(-of_minimums.x, -of_minimums.y));
  }
  /// A step, whose fragments are `a`; meanwhile the next one's become `next`.
  __device__ __forceinline__ void work(HalvesSums<S>& sums, float (&part)[S::kSums], const uint4 (&a)[kSixteens],
                                       uint4 (&next)[kSixteens], int step) const {
    const HalvesStep<S> at(step);
    steps.await_step(step);
    LANE_UNROLL
    for (int piece = 0; piece < S::kPieces; piece++) {
      multiply(part, a, step, piece, S::kSpan < 256 || at.begins());
      if (piece == 0 && step + S::kSplits < S::kSteps) {
        const HalvesStep<S> behind(step + S::kSplits);
        if (behind.begins()) windows.await_window(behind.window);
        unpack(next, behind);
      }
      const float2 of_span = span_factors(at, piece);
      await_tile_products<0>(part);
      if (S::kSpan < 256 || at.ends()) sums.add(part, of_span);
    }
    if (S::L::kMinimums && at.ends_window()) subtract_minimums(sums, part, step, at);
    if (at.ends()) windows.leave(at.window);
    steps.leave(step);
  }
  /// `split`: of the steps, from which on these warps have every kSplits-th.
  __device__ __forceinline__ void run(HalvesSums<S>& sums, int split) const {
    static_assert(S::kSteps % 2 == 0 && S::kSplits <= 2, "two steps at least, and a window's first for each split");
    float part[S::kSums] = {};
    uint4 even[kSixteens], odd[kSixteens];
    steps.begin();
    windows.await_window(0);
    unpack(even, HalvesStep<S>(split));
    LANE_KEEP_LOOP
    for (int step = 0; step < S::kSteps; step += 2 * S::kSplits) {
      work_alone(sums, part, even, odd, step, split);
      if (step + S::kSplits < S::kSteps) work_alone(sums, part, odd, even, step + S::kSplits, split);
    }
  }
  /// The split's of the kSplits steps from `step` on.
  __device__ __forceinline__ void work_alone(HalvesSums<S>& sums, float (&part)[S::kSums], const uint4 (&a)[kSixteens],
                                             uint4 (&next)[kSixteens], int step, int split) const {
    if (S::kSplits == 2 && split == 1) steps.pass();
    work(sums, part, a, next, step + split);
    if (S::kSplits == 2 && split == 0) steps.pass();
  }
};

/// Adds the odd steps' sums to the even ones', over shared memory that nothing else needs any more.
template <class S>
__device__ __forceinline__ void join_splits(HalvesSums<S>& sums, float* scratch, int split) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  group_barrier<kChunkConsumers>(0);
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++)
    if (split) scratch[i * 128 + thread] = sums.of[i];
  group_barrier<kChunkConsumers>(0);
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++)
    if (!split) sums.of[i] += scratch[i * 128 + thread];
}

/// Where a lane's sum `i` belongs.
template <class S>
struct HalvesPlace {
  int row, token;
  bool there;
  int64_t at;
  __device__ __forceinline__ HalvesPlace(const HalvesTask& task, int tile_row, int i) {
    const int lane = threadIdx.x & 31;
    row = task.first_row + row_of_tile<S>(tile_row) + i / 2 % 2 * 8;
    token = static_cast<int>(blockIdx.x) * S::kTokens + i / 4 * 8 + lane % 4 * 2 + i % 2;
    there = row < task.rows && token < task.tokens;
    at = static_cast<int64_t>(token) * task.rows + row;
  }
};

/// The results. Everything is read before anything is stored: a read behind a store would wait for the one before it.
template <class S>
__device__ __forceinline__ void store_halves(const HalvesTask& task, const StreamedResult& result,
                                             float (&sums)[S::kSums], int tile_row) {
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    const int token = min(HalvesPlace<S>(task, tile_row, i).token, task.tokens - 1);
    const uint8_t* end = task.x + static_cast<int64_t>(token / kChunkTokens + 1) * S::kVectorBytes;
    sums[i] *= __ldcg(reinterpret_cast<const float*>(end) - kChunkTokens + token % kChunkTokens);
  }
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    const HalvesPlace<S> place(task, tile_row, i);
    if (S::kMatrices == 2 && i / 2 % 2 == 0) sums[i] = gate_activation(sums[i], result.gelu) * sums[i + 2];
    if (result.bias && place.there) sums[i] += __ldg(result.bias + place.row);
    if (result.residual && place.there) sums[i] += __ldcg(result.residual + place.at);
  }
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    const HalvesPlace<S> place(task, tile_row, i);
    if ((S::kMatrices == 1 || i / 2 % 2 == 0) && place.there) result.out[place.at] = sums[i];
  }
}

template <class S>
__device__ __forceinline__ void consume_chunk(const HalvesTask& task, const StreamedResult& result,
                                              const HalvesShared<S>& shared, const RoleRing<S::kRing>& steps,
                                              const WindowRing<S::kWindowSlots>& windows) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, split = S::kSplits == 2 ? thread / 128 : 0;
  const int tile_row = thread / 32 % (4 * S::kGroups) * 16 + lane / 4;
  HalvesSums<S> sums{};
  HalvesConsumer<S>{shared, steps, windows, tile_row, lane % 4}.run(sums, split);
  if (S::kSplits == 2) join_splits<S>(sums, reinterpret_cast<float*>(shared.base), split);
  await_producer();
  if (split == 0) store_halves<S>(task, result, sums.of, tile_row);
}

template <class S>
__device__ __forceinline__ void chunk_block(const HalvesTask& task, const StreamedResult& result) {
  __shared__ CopyBarrier barriers[2 * (S::kRing + S::kWindowSlots)];
  LANE_DYNAMIC_SHARED(uint8_t, dynamic);
  const HalvesShared<S> shared{dynamic + (1024 - reinterpret_cast<uintptr_t>(dynamic) % 1024) % 1024};
  const RoleRing<S::kRing> steps{barriers, barriers + S::kRing};
  const WindowRing<S::kWindowSlots> windows{steps.left + S::kRing, steps.left + S::kRing + S::kWindowSlots};
  const int thread = static_cast<int>(threadIdx.x) - kChunkConsumers;  // of the producers
  if (thread == 0) {
    prefetch_slice<S>(task, 0);
    steps.make(4 * S::kGroups), windows.make(WeightProducer<S>::kThreads, kChunkConsumers / 32);
    publish_copy_barriers();
  }
  __syncthreads();
  if (thread < 0) {
    take_registers<kChunkConsumerRegisters>();
    consume_chunk<S>(task, result, shared, steps, windows);
  } else {
    give_registers<kChunkProducerRegisters>();
    if (thread < WeightProducer<S>::kThreads) {
      WeightProducer<S>{task, shared, windows, thread}.run(steps);
    } else {
      await_producer();
      VectorProducer<S>{task, shared, steps}.run();
    }
    for (int i = 0; S::kSplits == 2 && i < 2; i++) skip_group_barrier();
  }
}

constexpr int kChunkThreads = kChunkConsumers + kChunkProducers;

template <class L, int Columns, int Words, int Tokens, int Groups, int Splits>
__global__ __launch_bounds__(kChunkThreads, 1) void chunk_product(float* out, const uint8_t* weights, const uint8_t* x,
                                                                  const float* bias, const float* residual, int rows,
                                                                  int tokens) {
  admit_consumer();
  using S = HalvesShape<L, Columns, Words, Tokens, Groups, Splits, 1>;
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows;
  chunk_block<S>({{weights, weights}, x, rows, tokens, first_row}, {out, bias, residual, 0});
}

template <class L, int Columns, int Words, int Tokens, int Groups, int Splits>
__global__ __launch_bounds__(kChunkThreads, 1) void chunk_gated_product(float* out, const uint8_t* gate,
                                                                        const uint8_t* up, const uint8_t* x, int gelu,
                                                                        int rows, int tokens) {
  admit_consumer();
  using S = HalvesShape<L, Columns, Words, Tokens, Groups, Splits, 2>;
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows;
  chunk_block<S>({{gate, up}, x, rows, tokens, first_row}, {out, nullptr, nullptr, gelu});
}

template <class L0, class L1, class L2, int Columns, int Words, int Tokens, int Groups, int Splits>
__global__ __launch_bounds__(kChunkThreads,
                             1) void chunk_products(float* out0, float* out1, float* out2, const uint8_t* weights0,
                                                    const uint8_t* weights1, const uint8_t* weights2, const uint8_t* x,
                                                    const float* bias0, const float* bias1, const float* bias2,
                                                    int rows0, int rows1, int rows2, int tokens) {
  admit_consumer();
  constexpr int kRows = Groups * kChunkGroupRows;
  const int y = static_cast<int>(blockIdx.y), behind0 = (rows0 + kRows - 1) / kRows,
            behind1 = behind0 + (rows1 + kRows - 1) / kRows;
  const int product = y < behind0 ? 0 : y < behind1 ? 1 : 2;
  const int first_row = (y - (product == 0 ? 0 : product == 1 ? behind0 : behind1)) * kRows;
  const uint8_t* weights = product == 0 ? weights0 : product == 1 ? weights1 : weights2;
  const HalvesTask task{{weights, weights}, x, product == 0 ? rows0 : product == 1 ? rows1 : rows2, tokens, first_row};
  const StreamedResult result{product == 0   ? out0
                              : product == 1 ? out1
                                             : out2,
                              product == 0   ? bias0
                              : product == 1 ? bias1
                                             : bias2,
                              nullptr, 0};
  if (product == 0 || (product == 1 && kSameLayout<L0, L1>) || (product == 2 && kSameLayout<L0, L2>))
    chunk_block<HalvesShape<L0, Columns, Words, Tokens, Groups, Splits, 1>>(task, result);
  else if (product == 1 || kSameLayout<L1, L2>)
    chunk_block<HalvesShape<L1, Columns, Words, Tokens, Groups, Splits, 1>>(task, result);
  else
    chunk_block<HalvesShape<L2, Columns, Words, Tokens, Groups, Splits, 1>>(task, result);
}

}  // namespace LANE_NAMESPACE
