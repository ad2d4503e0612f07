// Products of repacked matrices and the vectors of a chunk's many tokens, on Hopper's tensor cores (sm_90a):
//
//   chunk_product<L, Columns, Words, Tokens, Groups, Splits>(out, weights, x, bias, residual, rows, tokens)
//       out[t][r] = sum_c W[r][c] n(x[t])[c] + bias[r] + residual[t][r]               out, residual: [tokens][rows]
//   chunk_part_product<L, Columns, Words, Tokens, Groups, Splits, Parts>(out, weights, x, bias, residual, rows, tokens,
//                                                                        partial, arrived)
//       the same in a grid Parts deep, note [parts]; partial: chunk_partial_floats; arrived: the vectors' counters,
//       zero; a launch leaves zeros
//   chunk_products<L0, L1, L2, Columns, Words, Tokens, Groups, Splits>(
//       out0, out1, out2, weights0, weights1, weights2, x, bias0, bias1, bias2, rows0, rows1, rows2, tokens)
//       up to three such products of the same vectors; of one that is not there, rows are 0
//   chunk_gated_product<L, Columns, Words, Tokens, Groups, Splits>(out, gate, up, x, gelu, rows, tokens)
//       out[t][r] = a(gate[r] n(x[t])) * (up[r] n(x[t])), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a quantized repacked layout; x: the vectors n(x[t]) as half_vectors makes them. bias and residual may be null.
// Grid, threads, shared bytes, Tokens, Groups and Splits: chunk_geometry.
//
// Weights enter as exact integers, note [exact halves], vectors as halves and, with two words, what those lose in eight
// bits: so a product is as accurate as one of int8x2 activations. Sums are float, of the tensor core over a span's
// columns, or over all of a row's, note [units]; then of the spans in their order; with several Splits of each split's
// steps, then of the splits. It is not the order of ops/tiled_product.cuh: a chunk's bits are not a decode step's.
//
// note [roles]
// Of a block's warps, eight or sixteen multiply: four have 64 rows or, with several Splits, a share of their steps.
// Three copy packed weights into shared memory, a window of each row at a time, and one has the vectors copied, step by
// step. A multiplying lane unpacks its own fragments of the next step while the tensor cores have this one's: unpacked
// weights never lie in shared memory, whose bandwidth bounds such a product. Weights need no vector, so they are copied
// before the launch's producer has ended.
#pragma once
#include "base/arrive.cuh"
#include "base/group_barrier.cuh"
#include "ops/chunk_consumer.cuh"
#include "ops/chunk_producers.cuh"
#include "ops/streamed_product.cuh"

namespace LANE_NAMESPACE {

/// Adds the other splits' sums to the first's, in their order, over shared memory that nothing else needs any more.
template <class S>
__device__ __forceinline__ void join_splits(float (&sums)[S::kSums], float* scratch, int split) {
  constexpr int kThreads = S::kConsumers / S::kSplits;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  group_barrier<S::kConsumers>(0);
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++)
    if (split) scratch[((split - 1) * S::kSums + i) * kThreads + thread] = sums[i];
  group_barrier<S::kConsumers>(0);
  if (split) return;
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    LANE_UNROLL
    for (int other = 0; other < S::kSplits - 1; other++) sums[i] += scratch[(other * S::kSums + i) * kThreads + thread];
  }
}

/// Leaves this part's sums to the last block of the same rows and tokens to arrive; there they become the sums of all
/// parts, in the parts' order. Whether this is that block. By the threads that multiply.
template <class S>
__device__ __forceinline__ bool join_parts(const HalvesTask& task, float (&sums)[S::kSums], int split) {
  constexpr int kThreads = S::kConsumers / S::kSplits;
  __shared__ bool last;
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const auto part = [&](int i) {
    return task.partial + static_cast<int64_t>(block * S::kParts + i) * (S::kSums * kThreads) +
           static_cast<int>(threadIdx.x) % kThreads;
  };
  float* own = part(static_cast<int>(blockIdx.z));
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++)
    if (split == 0) own[i * kThreads] = sums[i];
  group_barrier<S::kConsumers>(0);
  if (threadIdx.x == 0) {
    last = arrive(task.arrived + block) == S::kParts - 1;
    if (last) task.arrived[block] = 0;
  }
  group_barrier<S::kConsumers>(0);
  if (!last) return false;
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    if (split == 0) sums[i] = 0;
    LANE_UNROLL
    for (int p = 0; p < S::kParts; p++)
      if (split == 0) sums[i] += __ldcg(part(p) + i * kThreads);
  }
  return true;
}

/// Lays a lane's sums, as results without bias and residual, into shared memory.
template <class S>
__device__ __forceinline__ void lay_results(const HalvesShared<S>& shared, float (&sums)[S::kSums], int tile_row,
                                            int gelu) {
  const int row = row_of_tile<S>(tile_row), first = static_cast<int>(threadIdx.x) % 4 * 2;
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) sums[i] *= shared.factors()[i / 4 * 8 + first + i % 2];
  LANE_UNROLL
  for (int i = 0; i < S::kSums; i++) {
    if (S::kMatrices == 2 && i / 2 % 2) continue;
    const float result = S::kMatrices == 2 ? gate_activation(sums[i], gelu) * sums[i + 2] : sums[i];
    shared.results()[(i / 4 * 8 + first + i % 2) * HalvesShared<S>::kResultStride + row + i / 2 % 2 * 8] = result;
  }
}

__device__ __forceinline__ float plus(float a, float b) { return a + b; }
__device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/// Stores the results that lie in shared memory, a Piece (float or float4) at a time. Some are read before any of them
/// is stored: a read behind a store would wait for the one before it. By the threads that multiply.
template <class S, class Piece>
__device__ __forceinline__ void store_results(const HalvesTask& task, const StreamedResult& result,
                                              const HalvesShared<S>& shared) {
  constexpr int kTogether = sizeof(Piece) / sizeof(float);
  constexpr int kOfToken = S::kRows / kTogether, kPieces = S::kTokens * kOfToken;
  constexpr int kTurns = (kPieces + S::kConsumers - 1) / S::kConsumers;
  constexpr int kAtOnce = kTurns < 8 ? kTurns : 8;
  static_assert(kTurns % kAtOnce == 0);
  const auto piece_at = [](const float* p) { return reinterpret_cast<const Piece*>(p); };
  LANE_KEEP_LOOP
  for (int turn = 0; turn < kTurns; turn += kAtOnce) {
    Piece pieces[kAtOnce] = {};
    // f(i, place in shared memory, row, place in the results) of the pieces that are there.
    const auto each_there = [&](auto f) {
      LANE_UNROLL
      for (int i = 0; i < kAtOnce; i++) {
        const int at = (turn + i) * S::kConsumers + static_cast<int>(threadIdx.x);
        const int of_block = at / kOfToken, row_of_block = at % kOfToken * kTogether;
        const int token = static_cast<int>(blockIdx.x) * S::kTokens + of_block, row = task.first_row + row_of_block;
        if (at < kPieces && row < task.rows && token < task.tokens)
          f(i, of_block * HalvesShared<S>::kResultStride + row_of_block, row,
            static_cast<int64_t>(token) * task.rows + row);
      }
    };
    each_there([&](int i, int at, int, int64_t) { pieces[i] = *piece_at(shared.results() + at); });
    if (result.bias)
      each_there(
          [&](int i, int, int row, int64_t) { pieces[i] = plus(pieces[i], __ldg(piece_at(result.bias + row))); });
    if (result.residual)
      each_there([&](int i, int, int, int64_t place) {
        pieces[i] = plus(pieces[i], __ldcg(piece_at(result.residual + place)));
      });
    each_there([&](int i, int, int, int64_t place) { *reinterpret_cast<Piece*>(result.out + place) = pieces[i]; });
  }
}

template <class S>
__device__ __forceinline__ void consume_chunk(const HalvesTask& task, const StreamedResult& result,
                                              const HalvesShared<S>& shared, const RoleRing<S::kRing>& steps,
                                              const WindowRing<S::kWindowSlots>& windows) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  // The same in a warp, and known to be: so addresses for the tensor cores are made once a warp.
  const int four = __shfl_sync(LANE_FULL_WARP, thread / 128, 0);
  const int tile_row = thread / 32 % (4 * S::kGroups) * 16 + lane / 4;
  const auto none = static_cast<uint32_t>(task.rows >> 31);
  HalvesConsumer<S> consumer{
      shared, steps, windows, tile_row, lane % 4, four, HalvesOfCodes<typename S::L>::kept_powers(none)};
  consumer.run();
  if (S::kSplits > 1) join_splits<S>(consumer.sums, reinterpret_cast<float*>(shared.base), consumer.split);
  await_producer();
  const bool has_all = S::kParts == 1 || join_parts<S>(task, consumer.sums, consumer.split);
  group_barrier<S::kConsumers>(0);
  if (has_all && consumer.split == 0) lay_results<S>(shared, consumer.sums, tile_row, result.gelu);
  group_barrier<S::kConsumers>(0);
  if (!has_all) return;
  if (task.rows % 4 == 0)
    store_results<S, float4>(task, result, shared);
  else
    store_results<S, float>(task, result, shared);
}

template <class S>
__device__ __forceinline__ void chunk_block(const HalvesTask& task, const StreamedResult& result) {
  __shared__ CopyBarrier barriers[2 * (S::kRing + S::kWindowSlots)];
  LANE_DYNAMIC_SHARED(uint8_t, dynamic);
  const HalvesShared<S> shared{dynamic + (1024 - reinterpret_cast<uintptr_t>(dynamic) % 1024) % 1024};
  const RoleRing<S::kRing> steps{barriers, barriers + S::kRing};
  const WindowRing<S::kWindowSlots> windows{steps.left + S::kRing, steps.left + S::kRing + S::kWindowSlots};
  const int thread = static_cast<int>(threadIdx.x) - S::kConsumers;  // of the producers
  if (thread == 0) {
    prefetch_slice<S>(task, 0);
    steps.make(4 * S::kGroups), windows.make(WeightProducer<S>::kThreads, S::kConsumers / 32);
    publish_copy_barriers();
  }
  __syncthreads();
  if (thread < 0) {
    take_registers<chunk_consumer_registers(S::kFours)>();
    consume_chunk<S>(task, result, shared, steps, windows);
  } else {
    give_registers<chunk_producer_registers(S::kFours)>();
    if (thread < WeightProducer<S>::kThreads) {
      WeightProducer<S>{task, shared, windows, thread}.run(steps);
    } else {
      await_producer();
      VectorProducer<S>{task, shared, steps}.run();
    }
    for (int i = 0; i < (S::kSplits > 1 ? 2 : 0) + (S::kParts > 1 ? 2 : 0) + 2; i++) skip_group_barrier();
  }
}

template <class L, int Columns, int Words, int Tokens, int Groups, int Splits>
__global__ __launch_bounds__(chunk_threads(Groups, Splits),
                             1) void chunk_product(float* out, const uint8_t* weights, const uint8_t* x,
                                                   const float* bias, const float* residual, int rows, int tokens) {
  admit_consumer();
  using S = HalvesShape<L, Columns, Words, Tokens, Groups, Splits, 1>;
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows;
  chunk_block<S>({{weights, weights}, x, rows, tokens, first_row}, {out, bias, residual, 0});
}

template <class L, int Columns, int Words, int Tokens, int Groups, int Splits, int Parts>
__global__ __launch_bounds__(chunk_threads(Groups, Splits),
                             1) void chunk_part_product(float* out, const uint8_t* weights, const uint8_t* x,
                                                        const float* bias, const float* residual, int rows, int tokens,
                                                        float* partial, int* arrived) {
  admit_consumer();
  using S = HalvesShape<L, Columns, Words, Tokens, Groups, Splits, 1, Parts>;
  const uint8_t* part = weights + slice_offset(L::kBytes256, static_cast<size_t>(rows), S::kSlices,
                                               static_cast<int>(blockIdx.z) * S::kSlices.count);
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows;
  chunk_block<S>({{part, part}, x, rows, tokens, first_row, partial, arrived}, {out, bias, residual, 0});
}

template <class L, int Columns, int Words, int Tokens, int Groups, int Splits>
__global__ __launch_bounds__(chunk_threads(Groups, Splits),
                             1) void chunk_gated_product(float* out, const uint8_t* gate, const uint8_t* up,
                                                         const uint8_t* x, int gelu, int rows, int tokens) {
  admit_consumer();
  using S = HalvesShape<L, Columns, Words, Tokens, Groups, Splits, 2>;
  const int first_row = static_cast<int>(blockIdx.y) * S::kRows;
  chunk_block<S>({{gate, up}, x, rows, tokens, first_row}, {out, nullptr, nullptr, gelu});
}

template <class L0, class L1, class L2, int Columns, int Words, int Tokens, int Groups, int Splits>
__global__ __launch_bounds__(chunk_threads(Groups, Splits),
                             1) void chunk_products(float* out0, float* out1, float* out2, const uint8_t* weights0,
                                                    const uint8_t* weights1, const uint8_t* weights2, const uint8_t* x,
                                                    const float* bias0, const float* bias1, const float* bias2,
                                                    int rows0, int rows1, int rows2, int tokens) {
  admit_consumer();
  constexpr int kRows = Groups * kChunkGroupRows;
  // The last product's blocks begin first: values may be of a wider format than queries, and take longer.
  const int y = static_cast<int>(gridDim.y - 1 - blockIdx.y), behind0 = (rows0 + kRows - 1) / kRows,
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
