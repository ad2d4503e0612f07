// Streamed products of repacked matrices and one vector (sm_90 and up): for launches that depend on each other.
//
//   streamed_product<L, Columns, Words>(out, weights, x, norm, epsilon, bias, residual, rows, rows_per_block, ring)
//       out[r] = sum_c W[r][c] n(x)[c] + bias[r] + residual[r]                            out, bias, residual: [rows]
//   streamed_choice<L, Columns, Words>(out, best_values, best_rows, weights, x, norm, epsilon, bias, rows, ...)
//       the same for one token without a residual; and each block's greatest result with its row, the lowest of equals
//       (ops/greatest.cuh): best_values, best_rows: [grid]
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
// A row's sum: each lane's block, then the lanes as a tree (16, 8, 4, 2, 1 apart), then the slices in their order.
//
// note [short code]
// A launch of a decode step runs its code once, and the kernels of a layer push each other out of the instruction
// cache: on an H200 a thousand instructions take about 1 us to fetch. So loops stay rolled, rows go by two, the last
// slice shares the code of the others, and matrices of different layouts share all but the loop over rows.
#pragma once
#include "base/bulk_copy.cuh"
#include "base/group_barrier.cuh"
#include "base/keep_loop.h"
#include "base/launch.cuh"
#include "layout/activation.cuh"
#include "ops/greatest.cuh"
#include "ops/streamed_vector.cuh"

namespace LANE_NAMESPACE {

template <class A, class B>
constexpr bool kSameLayout = false;
template <class A>
constexpr bool kSameLayout<A, A> = true;

/// Constants of a kernel. Matrices: 2 where gate and up are computed side by side. A block's matrix has layout L0, L1
/// or L2.
template <int ColumnCount, int WordCount, int MatrixCount, class Layout0, class Layout1 = Layout0,
          class Layout2 = Layout0, int SlotRows = streamed_slot_rows(WordCount)>
struct StreamedShape {
  using L0 = Layout0;
  using L1 = Layout1;
  using L2 = Layout2;
  static constexpr int kColumns = ColumnCount, kWords = WordCount, kMatrices = MatrixCount;
  static constexpr Slices kSlices = slices(kColumns);
  static constexpr int kWarps = streamed_warps(kColumns, kMatrices == 2);
  static constexpr int kTeam = streamed_team(kColumns, kMatrices == 2), kWorkers = kSlices.count * kTeam;
  // Longer vectors come from inside a layer and have no norm; its registers are needed.
  static constexpr bool kNorms = kColumns <= kStreamedMaxNormed;
  static constexpr int kSlotRows = SlotRows;
  static constexpr int kVectorBytes = streamed_vector_bytes(kWords, kSlices.full);
  static constexpr bool kFloat = kWords == kFloatActivations, kSums = L0::kSums || L1::kSums || L2::kSums;
  static_assert(streamed_fits(kColumns, kMatrices == 2), "columns that no block of this kernel can split");
  static_assert(L0::kFloat == kFloat && L1::kFloat == kFloat && L2::kFloat == kFloat,
                "float weights take float activations, and only they");

  // Of one constant where the layouts agree, or the slices: then nothing is chosen at run time.
  static __device__ __forceinline__ int bytes_256(int layout) {
    return layout == 0 ? L0::kBytes256 : layout == 1 ? L1::kBytes256 : L2::kBytes256;
  }
  static __device__ __forceinline__ QuantizeTop top(int layout) {
    constexpr float k0 = kQuantizeTop<L0, kWords>, k1 = kQuantizeTop<L1, kWords>, k2 = kQuantizeTop<L2, kWords>;
    return layout == 0 ? QuantizeTop{k0, 1 / k0} : layout == 1 ? QuantizeTop{k1, 1 / k1} : QuantizeTop{k2, 1 / k2};
  }
  static __device__ __forceinline__ int blocks(int slice) {
    return kSlices.full == kSlices.last || slice < kSlices.count - 1 ? kSlices.full : kSlices.last;
  }
  /// Whether a warp makes some of its slice's vector, of 128 columns a piece.
  static __device__ __forceinline__ bool has_pieces(int worker) { return worker % kTeam < blocks(worker / kTeam) / 4; }
};

template <int Warps>
struct StreamedStatic {
  CopyBarrier barrier[Warps * kStreamedMaxRing];
  float squares[Warps];
};
/// The block's own: one for all the shapes of a kernel whose blocks have different work.
template <int Warps>
__device__ __forceinline__ StreamedStatic<Warps>& streamed_static() {
  __shared__ StreamedStatic<Warps> st;
  return st;
}

/// A block's task: rows [first, first + count) of a matrix, or of both.
struct StreamedTask {
  const uint8_t *weights, *up;
  int layout, rows, ring, first, count;
};

/// A warp's share of it: rows [begin, end) of the task, in one slice of one matrix.
struct StreamedWarp {
  int warp, lane, slice, member, matrix, begin, end, blocks;
  uint32_t row_bytes;
  uint8_t* ring;
  CopyBarrier* barrier;
  const uint8_t* source;
};

template <class S>
__device__ __forceinline__ uint32_t ring_bytes(const StreamedTask& task) {
  return static_cast<uint32_t>(task.ring * S::kSlotRows * slice_row_bytes(S::bytes_256(task.layout), S::kSlices.full));
}

template <class S>
__device__ __forceinline__ StreamedWarp streamed_warp(const StreamedTask& task, uint8_t* rings, CopyBarrier* barriers) {
  StreamedWarp w;
  w.warp = threadIdx.x >> 5, w.lane = threadIdx.x & 31;
  w.member = w.warp % S::kTeam, w.slice = w.warp / S::kTeam;
  constexpr int kSharers = S::kTeam / S::kMatrices;
  w.matrix = w.member / kSharers;
  const int part = w.member % kSharers, bytes_256 = S::bytes_256(task.layout);
  w.begin = task.count * part / kSharers, w.end = task.count * (part + 1) / kSharers;
  w.blocks = S::blocks(w.slice), w.row_bytes = static_cast<uint32_t>(slice_row_bytes(bytes_256, w.blocks));
  w.ring = rings + w.warp * ring_bytes<S>(task);
  w.barrier = barriers + w.warp * kStreamedMaxRing;
  w.source = (S::kMatrices == 2 && w.matrix ? task.up : task.weights) +
             slice_offset(bytes_256, static_cast<size_t>(task.rows), S::kSlices, w.slice) +
             static_cast<size_t>(task.first + w.begin) * w.row_bytes;
  return w;
}

/// The first copies, one a slot: by lane 0 alone.
template <class S>
__device__ __forceinline__ void start_ring(const StreamedTask& task, const StreamedWarp& w) {
  const uint32_t slot_bytes = S::kSlotRows * w.row_bytes, total = static_cast<uint32_t>(w.end - w.begin) * w.row_bytes;
  LANE_KEEP_LOOP
  for (int i = 0; i < task.ring; i++) init_copy_barrier(w.barrier + i);
  publish_copy_barriers();
  uint32_t at = 0;
  LANE_KEEP_LOOP
  for (int i = 0; i < task.ring && at < total; i++, at += slot_bytes)
    bulk_copy_once(w.ring + at, w.source + at, min(slot_bytes, total - at), w.barrier + i);
}

/// Sums over a warp of two values a lane, the second's in lane 16; and of one. Either's order of adding is the same, so
/// a row's bits do not depend on where it fell.
__device__ __forceinline__ float sum_two_rows(float a, float b, int lane) {
  const bool second = lane & 16;
  const float given = second ? a : b;
  a = (second ? b : a) + __shfl_xor_sync(~0u, given, 16);
  for (int o = 8; o; o >>= 1) a += __shfl_xor_sync(~0u, a, o);
  return a;
}
__device__ __forceinline__ float sum_row(float a) {
  for (int o = 16; o; o >>= 1) a += __shfl_xor_sync(~0u, a, o);
  return a;
}

/// Norms and quantizes this warp's pieces of the slice into shared memory. Returns the lane's sum of squares.
template <class S, class Pieces>
__device__ __forceinline__ float make_vector(const Pieces& x, const Pieces& norm, bool normed, const StreamedWarp& w,
                                             QuantizeTop top, uint8_t* vector) {
  float squares = 0;
  LANE_UNROLL
  for (int i = 0; i < Pieces::kMost; i++) {
    if (w.member + i * S::kTeam >= w.blocks / 4) continue;
    float4 v = x.value[i];
    if (normed) {
      const float4 n = norm.value[i];
      squares = fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, squares))));
      v.x *= n.x, v.y *= n.y, v.z *= n.z, v.w *= n.w;
    }
    const int block = (w.member + i * S::kTeam) * 4 + (w.lane >> 3);
    if constexpr (S::kFloat)
      store_floats<S::kSlices.full>(vector, v, block, w.lane);
    else
      quantize_into<S::kWords, S::kSlices.full, S::kSums>(vector, v, top, block, w.lane);
  }
  return squares;
}

/// How a ring of its own stays filled: with what start_ring did not copy yet of the warp's rows.
struct SliceFeed {
  int slot = 0;         // to be read next
  uint32_t parity = 0;  // of its copy
  const uint8_t* source = nullptr;
  uint32_t next = 0, total = 0, slot_bytes = 0;

  __device__ __forceinline__ void start(const StreamedTask& task, const StreamedWarp& w, uint32_t bytes,
                                        uint32_t all_bytes) {
    source = w.source, slot_bytes = bytes, total = all_bytes;
    next = static_cast<uint32_t>(task.ring) * slot_bytes;
  }
  /// Bytes from a slot to the next one.
  __device__ __forceinline__ uint32_t stride() const { return slot_bytes; }
  /// The warp has read the slot.
  __device__ __forceinline__ void refill(int lane, uint8_t* memory, CopyBarrier* barrier) {
    if (lane == 0 && next < total) bulk_copy_once(memory, source + next, min(slot_bytes, total - next), barrier);
    next += slot_bytes;
  }
};

/// The warp's rows, against its lane's block of the vector in registers; the first slot has arrived. `sums` is where
/// the first row's sum of this slice goes.
template <class S, class L, class Feed>
__device__ __forceinline__ void stream_rows(const StreamedTask& task, const StreamedWarp& w, const uint8_t* vector,
                                            float* sums, Feed& feed) {
  // Lanes beyond the slice do its last block again, with an activation of zeros.
  const bool inside = w.lane < w.blocks;
  const int block = inside ? w.lane : w.blocks - 1;
  const auto activation = [&] {
    if constexpr (S::kFloat)
      return load_floats<S::kSlices.full>(vector, block, inside);
    else
      return load_activation<S::kWords, S::kSlices.full, L::kSums>(vector, block, inside);
  }();
  const uint32_t row_bytes = static_cast<uint32_t>(slice_row_bytes(L::kBytes256, w.blocks));
  feed.start(task, w, S::kSlotRows * row_bytes, static_cast<uint32_t>(w.end - w.begin) * row_bytes);
  LANE_KEEP_LOOP
  for (int left = w.end - w.begin, done = 0; left > 0; left -= S::kSlotRows, done += S::kSlotRows) {
    uint8_t* rows = w.ring + feed.slot * feed.stride();
    CopyBarrier* barrier = w.barrier + feed.slot;
    if (done) wait_copy(barrier, feed.parity);
    auto dot = [&](int at) { return L::add(0.f, rows + at * row_bytes, w.blocks, block, activation); };
    const int count = min(left, S::kSlotRows);
    LANE_KEEP_LOOP
    for (int at = 0; at + 1 < count; at += 2) {
      const float sum = sum_two_rows(dot(at), dot(at + 1), w.lane);
      if ((w.lane & 15) == 0) sums[(at + (w.lane >> 4)) * S::kSlices.count] = sum;
    }
    if (count & 1) {
      const float sum = sum_row(dot(count - 1));
      if (w.lane == 0) sums[(count - 1) * S::kSlices.count] = sum;
    }
    sums += S::kSlotRows * S::kSlices.count;
    __syncwarp();
    feed.refill(w.lane, rows, barrier);
    await_copying_lane();
    if (++feed.slot == task.ring) feed.slot = 0, feed.parity ^= 1;
  }
}
template <class S, class Feed>
__device__ __forceinline__ void stream_rows_of_layout(const StreamedTask& task, const StreamedWarp& w,
                                                      const uint8_t* vector, float* sums, Feed& feed) {
  using L0 = typename S::L0;
  using L1 = typename S::L1;
  using L2 = typename S::L2;
  constexpr bool k01 = kSameLayout<L0, L1>, k02 = kSameLayout<L0, L2>, k12 = kSameLayout<L1, L2>;
  const bool first = task.layout == 0 || (k01 && task.layout == 1) || (k02 && task.layout == 2);
  const bool second = !k01 && (task.layout == 1 || (k12 && task.layout == 2));
  if (first) stream_rows<S, L0>(task, w, vector, sums, feed);
  if constexpr (!k01) {
    if (second) stream_rows<S, L1>(task, w, vector, sums, feed);
  }
  if constexpr (!k02 && !k12) {
    if (!first && !second) stream_rows<S, L2>(task, w, vector, sums, feed);
  }
}

/// Where the warp's first row has its sum.
template <class S>
__device__ __forceinline__ int first_sum(const StreamedTask& task, const StreamedWarp& w) {
  return (w.matrix * task.count + w.begin) * S::kSlices.count + w.slice;
}

/// One warp's work on its slice: the ring starts, the vector comes, the rows are streamed. Returns this thread's
/// element of the residual.
template <class S, class Input>
__device__ __forceinline__ float work_on_slice(const StreamedTask& task, const Input& in, const float* residual,
                                               const StreamedWarp& w, uint8_t* vector, float* sums, float* squares) {
  if (w.lane == 0) start_ring<S>(task, w);
  __syncwarp();
  VectorPieces<S::kSlices.full, S::kTeam> norm{}, x{}, post{}, carried{};
  const int pieces = w.blocks / 4, own = static_cast<int>(threadIdx.x);
  const int column = w.slice * S::kSlices.full * kBlockColumns + 128 * w.member + 4 * w.lane;
  const bool normed = S::kNorms && in.norm;
  const auto activation = [](const float4* p) { return __ldcg(p); };
  if (normed) norm.read(in.norm + column, pieces, w.member, read_here);
  if constexpr (Input::kPost) post.read(in.post + column, pieces, w.member, read_here);
  const float *from = in.x + column, *own_from = residual && own < task.count ? residual + task.first + own : nullptr;
  make_here(from), make_here(own_from);
  await_producer();
  if constexpr (Input::kPost) carried.read(in.carried + column, pieces, w.member, activation);
  if constexpr (Input::kPublished)
    x.ask(from, pieces, w.member, w.lane);
  else
    x.read(from, pieces, w.member, activation);
  [[maybe_unused]] float factor = 1;
  if constexpr (Input::kPost) factor = post_factor<S::kColumns>(in);
  if constexpr (Input::kPublished) x.await(from, pieces, w.member);
  if constexpr (Input::kPost) {
    x.norm_and_add(factor, post, carried);
    if (blockIdx.x == gridDim.x - 1) x.write(in.sum + column, pieces, w.member);
  }
  const float own_residual = own_from ? __ldcg(own_from) : 0.f;
  const float lane_squares = make_vector<S>(x, norm, normed, w, S::top(task.layout), vector);
  if (w.begin < w.end) wait_copy(w.barrier, 0);  // asked here, the answer costs nothing
  group_barrier<S::kTeam * 32>(w.slice);         // the warps of one slice share what they quantized
  if (normed && w.member < pieces) {             // read when all rows are done: nobody waits for this sum
    const float sum = sum_row(lane_squares);
    if (w.lane == 0) squares[w.warp] = sum;
  }
  SliceFeed feed;
  stream_rows_of_layout<S>(task, w, vector, sums + first_sum<S>(task, w), feed);
  return own_residual;
}

/// What becomes of the sums. gelu matters to gated launches alone.
struct StreamedResult {
  float* out;
  const float *bias, *residual;
  int gelu;
};

template <class S, class Input>
__device__ __forceinline__ float norm_factor(const Input& in, const float* squares) {
  if (!S::kNorms || !in.norm) return 1.f;
  float sums[4] = {0, 0, 0, 0};  // shorter chains of additions
  LANE_UNROLL
  for (int i = 0; i < S::kWorkers; i++)
    if (S::has_pieces(i)) sums[i % 4] += squares[i];
  return rsqrtf(fmaf((sums[0] + sums[1]) + (sums[2] + sums[3]), 1.f / S::kColumns, in.epsilon));
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

/// All of the block's sums are in shared memory. `see` is shown each result and its row.
template <class S, class Input, class See>
__device__ __forceinline__ void store_results(const StreamedTask& task, const Input& in, const StreamedResult& result,
                                              const float* sums, const float* squares, float own_residual, See see) {
  const float factor = norm_factor<S>(in, squares);
  LANE_KEEP_LOOP
  for (int i = threadIdx.x; i < task.count; i += S::kWarps * 32) {
    const int row = task.first + i;
    // Never contracted with the additions behind it: the products of several tokens give the same bits.
    float v = __fmul_rn(sum_slices<S>(sums, i), factor);
    if (S::kMatrices == 2)
      v = __fmul_rn(gate_activation(v, result.gelu), __fmul_rn(sum_slices<S>(sums, task.count + i), factor));
    if (result.bias) v += __ldg(result.bias + row);
    if (result.residual) v += i < S::kWorkers * 32 ? own_residual : __ldcg(result.residual + row);
    result.out[row] = v;
    see(v, row);
  }
}

struct SeeNothing {
  __device__ __forceinline__ void operator()(float, int) const {}
};

template <class S, class Input, class See = SeeNothing>
__device__ __forceinline__ void streamed_block(const StreamedTask& task, const Input& in, const StreamedResult& result,
                                               See see = {}) {
  StreamedStatic<S::kWarps>& st = streamed_static<S::kWarps>();
  LANE_DYNAMIC_SHARED(uint8_t, shared);
  const StreamedWarp w = streamed_warp<S>(task, shared, st.barrier);
  uint8_t* vectors = shared + S::kWorkers * ring_bytes<S>(task);
  float* sums = reinterpret_cast<float*>(vectors + S::kSlices.count * S::kVectorBytes);
  float own_residual = 0;
  if (w.slice < S::kSlices.count) {
    own_residual =
        work_on_slice<S>(task, in, result.residual, w, vectors + w.slice * S::kVectorBytes, sums, st.squares);
  } else {
    await_producer();
    if constexpr (Input::kPost) (void)post_factor<S::kColumns>(in);
    skip_group_barrier();
  }
  __syncthreads();
  store_results<S>(task, in, result, sums, st.squares, own_residual, see);
}

/// Block `block` of the `blocks` that share a matrix's rows.
__device__ __forceinline__ StreamedTask streamed_task(const uint8_t* weights, const uint8_t* up, int layout, int rows,
                                                      int rows_per_block, int ring, int block, int blocks) {
  const int more = rows - rows_per_block * blocks;  // the first `more` blocks take a row more
  return {weights, up, layout, rows, ring, block * rows_per_block + min(block, more), rows_per_block + (block < more)};
}

/// Token blockIdx.y's row of an array of rows, or null.
template <class T>
__device__ __forceinline__ T* token_row(T* array, int columns) {
  return array ? array + static_cast<int64_t>(blockIdx.y) * columns : nullptr;
}

// At most 64 registers with 512 threads, so that the next launch's block is resident, its ring filling, while this one
// works.
constexpr int streamed_residents(int columns, bool gated) { return streamed_warps(columns, gated) <= 16 ? 2 : 1; }

template <class L, int Columns, int Words>
__global__ __launch_bounds__(streamed_threads(Columns, false),
                             streamed_residents(Columns,
                                                false)) void streamed_product(float* out, const uint8_t* weights,
                                                                              const float* x, const float* norm,
                                                                              float epsilon, const float* bias,
                                                                              const float* residual, int rows,
                                                                              int rows_per_block, int ring) {
  admit_consumer();
  const StreamedTask task = streamed_task(weights, nullptr, 0, rows, rows_per_block, ring, blockIdx.x, gridDim.x);
  streamed_block<StreamedShape<Columns, Words, 1, L>>(
      task, StreamedInput{token_row(x, Columns), norm, epsilon},
      StreamedResult{token_row(out, rows), bias, token_row(residual, rows), 0});
}

/// What streamed_choice does of one vector, with the block's greatest result.
template <class L, int Columns, int Words, class Input>
__device__ __forceinline__ void choose_among_rows(float* out, float* best_values, int* best_rows,
                                                  const uint8_t* weights, const Input& in, const float* bias, int rows,
                                                  int rows_per_block, int ring) {
  __shared__ float values[streamed_warps(Columns, false)];
  __shared__ int indices[streamed_warps(Columns, false)];
  const StreamedTask task = streamed_task(weights, nullptr, 0, rows, rows_per_block, ring, blockIdx.x, gridDim.x);
  Best best = nothing_yet();
  streamed_block<StreamedShape<Columns, Words, 1, L>>(
      task, in, StreamedResult{out, bias, nullptr, 0}, [&](float v, int row) {
        if (v > best.value) best = Best{v, row};  // a thread's rows come in rising order: the lowest of equals stays
      });
  best = block_best(best, values, indices);
  if (threadIdx.x == 0) best_values[blockIdx.x] = best.value, best_rows[blockIdx.x] = best.index;
}
template <class L, int Columns, int Words>
__global__ __launch_bounds__(streamed_threads(Columns, false), streamed_residents(Columns, false)) void streamed_choice(
    float* out, float* best_values, int* best_rows, const uint8_t* weights, const float* x, const float* norm,
    float epsilon, const float* bias, int rows, int rows_per_block, int ring) {
  admit_consumer();
  choose_among_rows<L, Columns, Words>(out, best_values, best_rows, weights, StreamedInput{x, norm, epsilon}, bias,
                                       rows, rows_per_block, ring);
}

template <class L, int Columns, int Words>
__global__ __launch_bounds__(
    streamed_threads(Columns, true),
    streamed_residents(Columns, true)) void streamed_gated_product(float* out, const uint8_t* gate, const uint8_t* up,
                                                                   const float* x, const float* norm, float epsilon,
                                                                   int gelu, int rows, int rows_per_block, int ring) {
  admit_consumer();
  const StreamedTask task = streamed_task(gate, up, 0, rows, rows_per_block, ring, blockIdx.x, gridDim.x);
  streamed_block<StreamedShape<Columns, Words, 2, L>>(task, StreamedInput{token_row(x, Columns), norm, epsilon},
                                                      StreamedResult{token_row(out, rows), nullptr, nullptr, gelu});
}

/// One of the matrices whose blocks follow each other in a grid; one left out has no blocks.
struct StreamedPart {
  float* out;
  const uint8_t* weights;
  const float* bias;
  int rows, blocks, rows_per_block, ring;
};
struct PartTask {
  StreamedTask task;
  StreamedResult result;
};
/// Block `block` of those of all three.
__device__ __forceinline__ PartTask part_task(const StreamedPart& a, const StreamedPart& b, const StreamedPart& c,
                                              int block = static_cast<int>(blockIdx.x)) {
  const auto of = [&](const StreamedPart& p, int layout) {
    return PartTask{streamed_task(p.weights, nullptr, layout, p.rows, p.rows_per_block, p.ring, block, p.blocks),
                    {token_row(p.out, p.rows), p.bias, nullptr, 0}};
  };
  if (block < a.blocks) return of(a, 0);
  block -= a.blocks;
  if (block < b.blocks) return of(b, 1);
  block -= b.blocks;
  return of(c, 2);
}

/// blocks0 + blocks1 + blocks2 is the grid's x.
template <class L0, class L1, class L2, int Columns, int Words>
__global__ __launch_bounds__(
    streamed_threads(Columns, false),
    streamed_residents(Columns, false)) void streamed_products(float* out0, float* out1, float* out2,
                                                               const uint8_t* weights0, const uint8_t* weights1,
                                                               const uint8_t* weights2, const float* x,
                                                               const float* norm, float epsilon, const float* bias0,
                                                               const float* bias1, const float* bias2, int rows0,
                                                               int rows1, int rows2, int blocks0, int blocks1,
                                                               int blocks2, int rows_per_block0, int rows_per_block1,
                                                               int rows_per_block2, int ring0, int ring1, int ring2) {
  admit_consumer();
  const PartTask part = part_task({out0, weights0, bias0, rows0, blocks0, rows_per_block0, ring0},
                                  {out1, weights1, bias1, rows1, blocks1, rows_per_block1, ring1},
                                  {out2, weights2, bias2, rows2, blocks2, rows_per_block2, ring2});
  streamed_block<StreamedShape<Columns, Words, 1, L0, L1, L2>>(
      part.task, StreamedInput{token_row(x, Columns), norm, epsilon}, part.result);
}

}  // namespace LANE_NAMESPACE
