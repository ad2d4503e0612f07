// Streamed products of repacked matrices and one vector (sm_90 and up): for launches that depend on each other.
//
//   streamed_product<L, Columns, Words>(out, weights, x, norm, epsilon, bias, residual, rows, rows_per_block, ring)
//       out[r] = sum_c W[r][c] n(x)[c] + bias[r] + residual[r]                            out, bias, residual: [rows]
//   streamed_products<L0, L1, L2, Columns, Words>(three matrices, the same vector)
//       q, k and v: out_i = W_i n(x) + bias_i; a block belongs to one matrix
//   streamed_gated_product<L, Columns, Words>(out, gate, up, x, norm, epsilon, gelu, rows, rows_per_block, ring)
//       out[r] = a(gate[r] n(x)) * (up[r] n(x)), a the SiLU, or the GELU's tanh form where gelu is 1
//
// L is a repacked layout; weights are repacked matrices of `rows` rows; Columns % 128 == 0 (streamed_fits). Words: int8
// words of an activation, 2 or 1; 0 for the float layouts. n(x) is x where norm is null, else x * norm / sqrt(mean(x^2)
// + epsilon). bias and residual may be null. Grid, threads, shared bytes, rows_per_block and ring: streamed_geometry.
//
// Every warp owns a slice of a contiguous range of the block's rows and streams it by itself: lane 0 issues bulk copies
// into the warp's own ring, before the launch waits for its producer, and again as soon as the warp has read a slot.
// There is no producer warp and no barrier on the way. A lane owns the same 32 columns for all rows, so the quantized
// vector stays in registers: reading it from shared memory for each row would take three times the shared bandwidth of
// the weights.
//
// note [dependent launches]
// These kernels may be launched dependently: nothing that a launch of the same step writes is read, and nothing
// written, before await_producer(). Every thread waits, whether or not it reads: so a launch ends only after all
// launches before it, and waiting for the one just ahead is waiting for them all.
//
// A row's sum: each lane's block, then the lanes as a tree (16, 8, 4, 2, 1 apart), then the slices in their order.
#pragma once
#include "base/bulk_copy.cuh"
#include "base/group_barrier.cuh"
#include "base/launch.cuh"
#include "layout/activation.cuh"
#include "ops/streamed_vector.cuh"

#if defined(__CUDACC__)
#define LANE_KEEP_LOOP _Pragma("unroll 1")
#else
#define LANE_KEEP_LOOP
#endif

namespace LANE_NAMESPACE {

/// Constants of a kernel. Matrices: 2 where gate and up are computed side by side.
template <class Layout, int ColumnCount, int WordCount, int MatrixCount>
struct StreamedShape {
  using L = Layout;
  static constexpr int kColumns = ColumnCount, kWords = WordCount, kMatrices = MatrixCount;
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kWarps = streamed_warps(kColumns, kMatrices == 2),
                       kTeam = streamed_team(kColumns, kMatrices == 2);
  static constexpr int kWorkers = kSlices.count * kTeam;
  // Longer vectors come from inside a layer and have no norm; its registers are needed.
  static constexpr bool kNorms = kColumns <= kStreamedMaxNormed;
  static constexpr int kSlotRows = streamed_slot_rows(kWords);
  static constexpr int kSlotBytes = kSlotRows * slice_row_bytes(L::kBytes256, kSlices.full);
  static constexpr int kVectorBytes = streamed_vector_bytes(kWords, kSlices.full);
  static_assert(streamed_fits(kColumns, kMatrices == 2), "columns that no block of this kernel can split");
  static_assert(L::kFloat == (kWords == kFloatActivations), "float weights take float activations, and only they");
};

template <int Warps>
struct StreamedStatic {
  CopyBarrier barrier[Warps * kStreamedMaxRing];
  float squares[Warps];
};

template <int Value>
struct Constant {
  static constexpr int kValue = Value;
};
template <class A, class B>
constexpr bool kSameLayout = false;
template <class A>
constexpr bool kSameLayout<A, A> = true;

/// A block's task: rows [first, first + count) of a matrix, or of both.
struct StreamedTask {
  const uint8_t *weights, *up;
  int rows, ring, first, count;
};

/// A warp's share of it: rows [begin, end) of the task, in one slice of one matrix.
struct StreamedWarp {
  int warp, lane, slice, member, matrix, begin, end;
  uint8_t* ring;
  CopyBarrier* barrier;
  const uint8_t* source;
};

template <class S>
__device__ __forceinline__ StreamedWarp streamed_warp(const StreamedTask& task, uint8_t* rings, CopyBarrier* barriers) {
  StreamedWarp w;
  w.warp = threadIdx.x >> 5, w.lane = threadIdx.x & 31;
  w.member = w.warp % S::kTeam, w.slice = w.warp / S::kTeam;
  constexpr int kSharers = S::kTeam / S::kMatrices;
  w.matrix = w.member / kSharers;
  const int part = w.member % kSharers;
  w.begin = task.count * part / kSharers, w.end = task.count * (part + 1) / kSharers;
  w.ring = rings + w.warp * task.ring * S::kSlotBytes;
  w.barrier = barriers + w.warp * kStreamedMaxRing;
  const int blocks = w.slice < S::kSlices.count - 1 ? S::kSlices.full : S::kSlices.last;
  w.source = (S::kMatrices == 2 && w.matrix ? task.up : task.weights) +
             slice_offset(S::L::kBytes256, static_cast<size_t>(task.rows), S::kSlices, w.slice) +
             static_cast<size_t>(task.first + w.begin) * slice_row_bytes(S::L::kBytes256, blocks);
  return w;
}

/// The first copies, one a slot: by lane 0 alone.
template <class S, int Blocks>
__device__ __forceinline__ void start_ring(const StreamedTask& task, const StreamedWarp& w) {
  constexpr uint32_t kSlot = S::kSlotRows * slice_row_bytes(S::L::kBytes256, Blocks);
  const uint32_t total = static_cast<uint32_t>(w.end - w.begin) * slice_row_bytes(S::L::kBytes256, Blocks);
  const uint32_t slots = min((total + kSlot - 1) / kSlot, static_cast<uint32_t>(task.ring));
  for (uint32_t i = 0; i < slots; i++) init_copy_barrier(w.barrier + i);
  publish_copy_barriers();
  for (uint32_t i = 0; i < slots; i++)
    bulk_copy_once(w.ring + i * kSlot, w.source + i * kSlot, min(kSlot, total - i * kSlot), w.barrier + i);
}

/// Sums over a warp of `Rows` values a lane, in fewer shuffles than one by one; row i's sum ends in lane 8 * i. Each
/// row's order of adding is the same for any `Rows`, so a row's bits do not depend on where it fell.
template <int Rows>
__device__ __forceinline__ float sum_rows(const float (&v)[4], int lane) {
  const bool upper = lane & 16, odd = lane & 8;
  float a = v[0], b = v[1];
  if (Rows == 4) {
    const float c = v[2], d = v[3], s = upper ? a : c, t = upper ? b : d;
    a = (upper ? c : a) + __shfl_xor_sync(~0u, s, 16);
    b = (upper ? d : b) + __shfl_xor_sync(~0u, t, 16);
  } else {
    a += __shfl_xor_sync(~0u, a, 16);
    if (Rows == 2) b += __shfl_xor_sync(~0u, b, 16);
  }
  if (Rows == 1) {
    a += __shfl_xor_sync(~0u, a, 8);
  } else {
    const float s = odd ? a : b;
    a = (odd ? b : a) + __shfl_xor_sync(~0u, s, 8);
  }
  for (int o = 4; o; o >>= 1) a += __shfl_xor_sync(~0u, a, o);
  return a;
}

/// Norms and quantizes this warp's pieces of the slice into shared memory. Returns the lane's sum of squares.
template <class S, int Blocks, class Pieces>
__device__ __forceinline__ float make_vector(const Pieces& x, const Pieces& norm, bool normed, const StreamedWarp& w,
                                             uint8_t* vector) {
  float squares = 0;
  LANE_UNROLL
  for (int i = 0; i < Pieces::kMost; i++) {
    if (w.member + i * S::kTeam >= Pieces::kPieces) continue;
    float4 v = x.value[i];
    if (normed) {
      const float4 n = norm.value[i];
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
      v.x *= n.x, v.y *= n.y, v.z *= n.z, v.w *= n.w;
    }
    const int block = (w.member + i * S::kTeam) * 4 + (w.lane >> 3);
    if constexpr (S::L::kFloat)
      store_floats<Blocks>(vector, v, block, w.lane);
    else
      quantize_into<typename S::L, S::kWords, Blocks>(vector, v, block, w.lane);
  }
  return squares;
}

/// The warp's rows, against the vector in registers; the first slot has arrived. `sums` is where the first row's sum of
/// this slice goes.
template <class S, int Blocks, class A>
__device__ __forceinline__ void stream_rows(const StreamedTask& task, const StreamedWarp& w, const A& activation,
                                            int block, float* sums) {
  constexpr int kRow = slice_row_bytes(S::L::kBytes256, Blocks);
  constexpr uint32_t kSlot = S::kSlotRows * kRow;
  const uint32_t total = static_cast<uint32_t>(w.end - w.begin) * kRow;
  uint32_t next_copy = static_cast<uint32_t>(task.ring) * kSlot, parity = 0;
  int slot = 0;
  LANE_KEEP_LOOP
  for (int left = w.end - w.begin, done = 0; left > 0; left -= S::kSlotRows, done += S::kSlotRows) {
    const uint8_t* rows = w.ring + slot * kSlot;
    if (done) wait_copy(w.barrier + slot, parity);
    auto add_rows = [&](auto count, int at) {
      constexpr int kCount = decltype(count)::kValue;
      float v[4] = {0, 0, 0, 0};
      LANE_UNROLL
      for (int i = 0; i < kCount; i++) v[i] = S::L::add(0.f, rows + (at + i) * kRow, Blocks, block, activation);
      const float sum = sum_rows<kCount>(v, w.lane);
      if ((w.lane & 7) == 0 && (w.lane >> 3) < kCount) sums[(at + (w.lane >> 3)) * S::kSlices.count] = sum;
    };
    // Few paths: a launch runs its code once, and fetching more of it costs more than it saves.
    if (left >= S::kSlotRows) {
      add_rows(Constant<S::kSlotRows>(), 0);
    } else {
      if (S::kSlotRows > 2 && (left & 2)) add_rows(Constant<2>(), 0);
      if (left & 1) add_rows(Constant<1>(), left - 1);
    }
    sums += S::kSlotRows * S::kSlices.count;
    __syncwarp();
    if (w.lane == 0 && next_copy < total)
      bulk_copy_once(w.ring + slot * kSlot, w.source + next_copy, min(kSlot, total - next_copy), w.barrier + slot);
    next_copy += kSlot;
    if (++slot == task.ring) slot = 0, parity ^= 1;
  }
}

/// One warp's work on a slice of `Blocks` blocks: the ring starts, the vector comes, the rows are streamed. Returns
/// this thread's element of the residual.
template <class S, int Blocks>
__device__ __forceinline__ float work_on_slice(const StreamedTask& task, const StreamedInput& in, const float* residual,
                                               const StreamedWarp& w, uint8_t* vector, float* sums, float* squares) {
  if (w.lane == 0) start_ring<S, Blocks>(task, w);
  __syncwarp();
  VectorPieces<Blocks, S::kTeam> norm{}, x{};
  const int first_column = w.slice * S::kSlices.full * kBlockColumns;
  const bool normed = S::kNorms && in.norm;
  if (normed) norm.read(in.norm + first_column, w.member, w.lane, [](const float4* p) { return __ldg(p); });
  await_producer();
  x.read(in.x + first_column, w.member, w.lane, [](const float4* p) { return __ldcg(p); });
  const int own = static_cast<int>(threadIdx.x);
  const float own_residual = residual && own < task.count ? __ldcg(residual + task.first + own) : 0.f;
  float lane_squares = make_vector<S, Blocks>(x, norm, normed, w, vector);
  if (normed) {
    for (int o = 16; o; o >>= 1) lane_squares += __shfl_xor_sync(~0u, lane_squares, o);
    if (w.lane == 0) squares[w.warp] = lane_squares;
  }
  if (w.begin < w.end) wait_copy(w.barrier, 0);  // asked here, the answer costs nothing
  group_barrier<S::kTeam * 32>(w.slice);         // the warps of one slice share what they quantized
  // Lanes beyond the slice do its last block again, with an activation of zeros.
  const bool inside = w.lane < Blocks;
  const int block = inside ? w.lane : Blocks - 1;
  float* first_sum = sums + (w.matrix * task.count + w.begin) * S::kSlices.count + w.slice;
  if constexpr (S::L::kFloat)
    stream_rows<S, Blocks>(task, w, load_floats<Blocks>(vector, block, inside), block, first_sum);
  else
    stream_rows<S, Blocks>(task, w, load_activation<typename S::L, S::kWords, Blocks>(vector, block, inside), block,
                           first_sum);
  return own_residual;
}

/// What becomes of the sums. gelu matters to gated launches alone.
struct StreamedResult {
  float* out;
  const float *bias, *residual;
  int gelu;
};

template <class S>
__device__ __forceinline__ float norm_factor(const StreamedInput& in, const float* squares) {
  if (!S::kNorms || !in.norm) return 1.f;
  float sum = 0;
  LANE_UNROLL
  for (int i = 0; i < S::kWorkers; i++) sum += squares[i];
  return rsqrtf(sum * (1.f / S::kColumns) + in.epsilon);
}

/// A row's sum: its slices in their order.
template <class S>
__device__ __forceinline__ float sum_slices(const float* sums, int row) {
  float v = 0;
  LANE_UNROLL
  for (int i = 0; i < S::kSlices.count; i++) v += sums[row * S::kSlices.count + i];
  return v;
}

__device__ __forceinline__ float gate_activation(float v, int gelu) {
  const float z = gelu ? 1.5957691216f * fmaf(0.044715f * v * v, v, v) : v;  // 2 sqrt(2 / pi)
  return __fdividef(v, 1.f + __expf(-z));
}

/// All of the block's sums are in shared memory.
template <class S>
__device__ __forceinline__ void store_results(const StreamedTask& task, const StreamedInput& in,
                                              const StreamedResult& result, const float* sums, const float* squares,
                                              float own_residual) {
  const float factor = norm_factor<S>(in, squares);
  for (int i = threadIdx.x; i < task.count; i += S::kWarps * 32) {
    const int row = task.first + i;
    float v = sum_slices<S>(sums, i) * factor;
    if (S::kMatrices == 2) v = gate_activation(v, result.gelu) * (sum_slices<S>(sums, task.count + i) * factor);
    if (result.bias) v += __ldg(result.bias + row);
    if (result.residual) v += i < S::kWorkers * 32 ? own_residual : __ldcg(result.residual + row);
    result.out[row] = v;
  }
}

template <class S>
__device__ __forceinline__ void streamed_block(const StreamedTask& task, const StreamedInput& in,
                                               const StreamedResult& result, StreamedStatic<S::kWarps>& st) {
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  constexpr Slices kSlices = S::kSlices;
  const StreamedWarp w = streamed_warp<S>(task, shared, st.barrier);
  uint8_t* vectors = shared + S::kWorkers * task.ring * S::kSlotBytes;
  uint8_t* vector = vectors + w.slice * S::kVectorBytes;
  float* sums = reinterpret_cast<float*>(vectors + kSlices.count * S::kVectorBytes);
  float own_residual = 0;
  if (w.slice >= kSlices.count) {
    await_producer();
    skip_group_barrier();
  } else if (kSlices.full == kSlices.last || w.slice < kSlices.count - 1) {
    own_residual = work_on_slice<S, kSlices.full>(task, in, result.residual, w, vector, sums, st.squares);
  } else {
    own_residual = work_on_slice<S, kSlices.last>(task, in, result.residual, w, vector, sums, st.squares);
  }
  __syncthreads();
  store_results<S>(task, in, result, sums, st.squares, own_residual);
}

/// Block `block` of the `blocks` that share a matrix's rows.
__device__ __forceinline__ StreamedTask streamed_task(const uint8_t* weights, const uint8_t* up, int rows,
                                                      int rows_per_block, int ring, int block, int blocks) {
  const int more = rows - rows_per_block * blocks;  // the first `more` blocks take a row more
  return {weights, up, rows, ring, block * rows_per_block + min(block, more), rows_per_block + (block < more)};
}

// At most 64 registers with 512 threads, so that the next launch's block is resident, its ring filling, while this one
// works.
constexpr int streamed_resident_blocks(int warps) { return warps <= 16 ? 2 : 1; }

template <class L, int Columns, int Words>
__global__ __launch_bounds__(
    32 * streamed_warps(Columns, false),
    streamed_resident_blocks(streamed_warps(Columns, false))) void streamed_product(float* out, const uint8_t* weights,
                                                                                    const float* x, const float* norm,
                                                                                    float epsilon, const float* bias,
                                                                                    const float* residual, int rows,
                                                                                    int rows_per_block, int ring) {
  using S = StreamedShape<L, Columns, Words, 1>;
  __shared__ StreamedStatic<S::kWarps> st;
  admit_consumer();
  const StreamedTask task = streamed_task(weights, nullptr, rows, rows_per_block, ring, blockIdx.x, gridDim.x);
  streamed_block<S>(task, {x, norm, epsilon}, {out, bias, residual, 0}, st);
}

template <class L, int Columns, int Words>
__global__ __launch_bounds__(32 * streamed_warps(Columns, true),
                             streamed_resident_blocks(streamed_warps(
                                 Columns, true))) void streamed_gated_product(float* out, const uint8_t* gate,
                                                                              const uint8_t* up, const float* x,
                                                                              const float* norm, float epsilon,
                                                                              int gelu, int rows, int rows_per_block,
                                                                              int ring) {
  using S = StreamedShape<L, Columns, Words, 2>;
  __shared__ StreamedStatic<S::kWarps> st;
  admit_consumer();
  const StreamedTask task = streamed_task(gate, up, rows, rows_per_block, ring, blockIdx.x, gridDim.x);
  streamed_block<S>(task, {x, norm, epsilon}, {out, nullptr, nullptr, gelu}, st);
}

/// blocks0 + blocks1 + blocks2 is the grid; a third matrix left out has no blocks. One copy of the code a layout.
template <class L0, class L1, class L2, int Columns, int Words>
__global__ __launch_bounds__(32 * streamed_warps(Columns, false),
                             streamed_resident_blocks(streamed_warps(
                                 Columns,
                                 false))) void streamed_products(float* out0, float* out1, float* out2,
                                                                 const uint8_t* weights0, const uint8_t* weights1,
                                                                 const uint8_t* weights2, const float* x,
                                                                 const float* norm, float epsilon, const float* bias0,
                                                                 const float* bias1, const float* bias2, int rows0,
                                                                 int rows1, int rows2, int blocks0, int blocks1,
                                                                 int blocks2, int rows_per_block0, int rows_per_block1,
                                                                 int rows_per_block2, int ring0, int ring1, int ring2) {
  __shared__ StreamedStatic<streamed_warps(Columns, false)> st;
  admit_consumer();
  int block = static_cast<int>(blockIdx.x), matrix = 0;
  StreamedTask task;
  StreamedResult result{nullptr, nullptr, nullptr, 0};
  if (block < blocks0) {
    task = streamed_task(weights0, nullptr, rows0, rows_per_block0, ring0, block, blocks0);
    result.out = out0, result.bias = bias0;
  } else if ((block -= blocks0) < blocks1) {
    task = streamed_task(weights1, nullptr, rows1, rows_per_block1, ring1, block, blocks1);
    result.out = out1, result.bias = bias1, matrix = 1;
  } else {
    task = streamed_task(weights2, nullptr, rows2, rows_per_block2, ring2, block - blocks1, blocks2);
    result.out = out2, result.bias = bias2, matrix = 2;
  }
  const StreamedInput in{x, norm, epsilon};
  constexpr bool k01 = kSameLayout<L0, L1>, k02 = kSameLayout<L0, L2>, k12 = kSameLayout<L1, L2>;
  const bool first = matrix == 0 || (k01 && matrix == 1) || (k02 && matrix == 2);
  const bool second = !k01 && (matrix == 1 || (k12 && matrix == 2));
  if (first) streamed_block<StreamedShape<L0, Columns, Words, 1>>(task, in, result, st);
  if constexpr (!k01) {
    if (!first && second) streamed_block<StreamedShape<L1, Columns, Words, 1>>(task, in, result, st);
  }
  if constexpr (!k02 && !k12) {
    if (!first && !second) streamed_block<StreamedShape<L2, Columns, Words, 1>>(task, in, result, st);
  }
}

}  // namespace LANE_NAMESPACE
