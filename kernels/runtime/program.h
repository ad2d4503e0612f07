// What lanec bakes into a program: tables of numbers, and a function for each form. The rest of runtime/ reads them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/launch.cuh"
#include "runtime/vocabulary.h"

namespace LANE_NAMESPACE {

/// One file of the checkpoint, as it was when the program was compiled.
struct ShardInfo {
  uint64_t file_bytes, data_start;
  uint64_t header_digest;  // of bytes [0, data_start)
  uint64_t data_digest;    // PieceDigest of the rest
};

/// How an array reaches the device.
enum class Load {
  Bytes,        // as it lies in the file
  Float32,      // as it lies in the file; a vector
  Float16,      // a vector, widened to float32
  BFloat16,     // a vector, widened to float32
  RotaryTable,  // float64 frequencies, one a pair: a table of (cos, sin) for every position
  Repacked,     // a matrix, into another order on the device
};

constexpr int kSidecar = -1;

/// layout/repack.cuh: out, stored rows, first row, how many, all rows, columns.
using RepackKernel = void (*)(uint8_t*, const uint8_t*, int, int, int, int);

/// ops/finite.cuh: the lowest index so far, stored weights, the first one's index, how many.
using FiniteKernel = void (*)(unsigned long long*, const uint8_t*, int64_t, int64_t);

struct PlacementInfo {
  const char* name;        // the tensor's, as the file has it; lanec's own where it made the array
  int shard;               // or kSidecar
  uint64_t offset, bytes;  // in the shard's file or the sidecar's payload
  uint64_t device_offset;  // in the weights' allocation, nothing away
  uint64_t device_bytes;
  Load load;
  int rows, columns;    // a matrix's, all experts' together; else those of the array on the device
  double magnitude;     // RotaryTable: multiplies cos and sin
  FiniteKernel finite;  // looks for what is no number; null where lanec made the array
  RepackKernel repack;  // Repacked: by rows, as they come
};

/// A tensor whose values are in the sidecar's, computed at compile time: they stay as they were, whatever else changes.
struct FoldedInfo {
  const char* tensor;  // as the file has it
  int shard;
  uint64_t offset, bytes;  // in the shard's file
  uint64_t digest;
};

/// How a launch reads a matrix that is in host memory.
enum class Away {
  Copied,  // from a buffer on the device, to which it is copied ahead of each use
  Read,    // where it lies
};

/// Matrices that leave the device together, when memory is short; or that have left, to be read otherwise from now on.
struct LeavingInfo {
  int matrices;  // the next so many of `leaving_matrices`
  Away away;
  uint64_t buffer_bytes;  // of each of the two buffers, once these have left, and those before them
  uint64_t weight_bytes;  // all that weights then take on the device, the buffers included
};

/// An address that becomes whatever pointer the kernel takes.
struct Address {
  uint8_t* byte;
  template <class T>
  operator T*() const {
    return reinterpret_cast<T*>(byte);
  }
};

/// A region of the device's memory, addressed by byte offset: `arena(512)`.
struct Region {
  uint8_t* base = nullptr;
  Address operator()(uint64_t offset) const { return {base + offset}; }
};

/// Where a step finds everything.
struct Memory {
  Region weights;            // vectors and tables; Step::matrix finds the others
  Region state;              // carried state, a block a sequence
  Region arena;              // what a step computes
  Region logits;             // float32, [rows][vocabulary]
  int* tokens = nullptr;     // what the step is fed
  int* positions = nullptr;  // where each sequence stands
  int* slots = nullptr;      // which block of state each sequence has
  int* next = nullptr;       // what the step chose
  // What the host is shown of it (ops/shown.cuh), by steps of one sequence and by steps of several.
  int *turns = nullptr, *shown = nullptr, *batch_turns = nullptr, *batch_shown = nullptr;
};

/// The streams of a step, and an event for each launch that another stream waits for.
struct Streams {
  static constexpr int kMost = 4;
  cudaStream_t stream[kMost] = {};
  cudaEvent_t* events = nullptr;
};

/// A matrix, wherever it lies.
struct MatrixPlace {
  uint8_t* home = nullptr;
  uint64_t copied_bytes = 0;  // to a buffer, ahead of a launch; 0: the launch reads it at home
};

/// Matrices on their way to the device: what the next launch reads is copied to one buffer while the other is read.
struct Copies {
  const MatrixPlace* places = nullptr;  // of each placement
  uint64_t buffer_bytes = 0;            // 0: nothing is copied
  uint8_t* buffer[2] = {};
  cudaStream_t stream = nullptr;
  cudaEvent_t begun = nullptr;               // the step may be entered
  cudaEvent_t filled[2] = {}, read[2] = {};  // of each buffer: its copies have ended; its launch has
};

/// Takes a step's launches. The first error ends it: the rest is passed over. Its functions stay out of line, because a
/// program says thousands of launches, and inlined they would be most of its compile time.
class Step {
 public:
  Step(const Streams& streams, const Copies& copies) : streams_(streams), copies_(copies) {
    if (copies_.buffer_bytes > 0) error_ = begin_copies();
  }
  cudaError_t error() const { return error_; }

  /// Where the next launch finds matrix `p`: all that it reads are asked for between the launch before it and itself.
  __attribute__((noinline)) Address matrix(int p) {
    const MatrixPlace& place = copies_.places[p];
    if (place.copied_bytes == 0) return {place.home};
    uint8_t* to = copies_.buffer[turn_] + filled_;
    if (error_ == cudaSuccess) error_ = copy(place, to);
    return {to};
  }

  template <class... Parameters>
  __attribute__((noinline)) void launch(int stream, dim3 grid, dim3 block, size_t shared_bytes,
                                        void (*kernel)(Parameters...),
                                        typename Parameter<Parameters>::type... arguments) {
    await_copies(stream);
    if (error_ != cudaSuccess) return;
    error_ = LANE_NAMESPACE::launch(streams_.stream[stream], grid, block, shared_bytes, kernel, arguments...);
    release_buffer(stream);
  }
  /// The same, but the kernel may start before the one ahead of it in the stream has ended.
  template <class... Parameters>
  __attribute__((noinline)) void launch_dependent(int stream, dim3 grid, dim3 block, size_t shared_bytes,
                                                  void (*kernel)(Parameters...),
                                                  typename Parameter<Parameters>::type... arguments) {
    // Such a kernel reads its matrices before it waits: copies must have ended before it starts.
    if (filled_ > 0) return launch(stream, grid, block, shared_bytes, kernel, arguments...);
    if (error_ != cudaSuccess) return;
    error_ = LANE_NAMESPACE::launch_dependent(streams_.stream[stream], grid, block, shared_bytes, kernel, arguments...);
  }
  /// Event `event` stands for what stream `from` has been given so far.
  __attribute__((noinline)) void record(int event, int from) {
    if (error_ == cudaSuccess) error_ = cudaEventRecord(streams_.events[event], streams_.stream[from]);
  }
  __attribute__((noinline)) void wait(int event, int on) {
    if (error_ == cudaSuccess) error_ = cudaStreamWaitEvent(streams_.stream[on], streams_.events[event], 0);
  }

 private:
  /// The copies follow what the main stream did before this step, and nothing of the step.
  cudaError_t begin_copies() {
    LANE_TRY(cudaEventRecord(copies_.begun, streams_.stream[0]));
    return cudaStreamWaitEvent(copies_.stream, copies_.begun, 0);
  }
  /// Into the buffer whose turn it is, once the launch that read it last has ended.
  cudaError_t copy(const MatrixPlace& place, uint8_t* to) {
    if (filled_ + place.copied_bytes > copies_.buffer_bytes) return cudaErrorInvalidValue;
    if (filled_ == 0 && used_[turn_]) LANE_TRY(cudaStreamWaitEvent(copies_.stream, copies_.read[turn_], 0));
    filled_ += (place.copied_bytes + 255) / 256 * 256;
    return cudaMemcpyAsync(to, place.home, place.copied_bytes, cudaMemcpyHostToDevice, copies_.stream);
  }
  void await_copies(int stream) {
    if (filled_ == 0 || error_ != cudaSuccess) return;
    error_ = cudaEventRecord(copies_.filled[turn_], copies_.stream);
    if (error_ == cudaSuccess) error_ = cudaStreamWaitEvent(streams_.stream[stream], copies_.filled[turn_], 0);
  }
  void release_buffer(int stream) {
    if (filled_ == 0 || error_ != cudaSuccess) return;
    error_ = cudaEventRecord(copies_.read[turn_], streams_.stream[stream]);
    used_[turn_] = true;
    turn_ ^= 1;
    filled_ = 0;
  }

  const Streams& streams_;
  const Copies& copies_;
  cudaError_t error_ = cudaSuccess;
  int turn_ = 0;         // the buffer that the next launch reads
  uint64_t filled_ = 0;  // bytes of it
  bool used_[2] = {};    // in this step
};

/// Marks a form's function, a straight list of launches: to optimize it gains nothing and would take most of the time
/// that compiling a program takes.
#if defined(__GNUC__) && !defined(__clang__)
#define LANE_STEP __attribute__((optimize("O0")))
#else
#define LANE_STEP
#endif

/// One compiled step.
struct FormInfo {
  const char* tag;      // "1", "4", "b4"
  int sequences, rows;  // tokens of a step are sequences * rows
  int events;           // that `step` uses
  void (*launches)(Step& s, const Memory& m);
  /// Of a chunk, after its step: the logits of any of its rows. Null where the step makes every row's.
  void (*head)(Step& s, const Memory& m, uint64_t row);
};

struct ProgramInfo {
  const ShardInfo* shards;
  int shard_count;
  uint64_t sidecar_bytes, sidecar_digest;  // of the payload
  const FoldedInfo* folded;
  int folded_count;
  const PlacementInfo* placements;
  int placement_count;
  const FormInfo* forms;  // the decode step first, then chunks from the largest to the smallest
  int form_count;
  int context, vocabulary_rows;
  int sequences;  // that the state has room for
  uint64_t weight_bytes, fixed_weight_bytes, state_bytes, arena_bytes, logits_bytes, io_bytes;
  const LeavingInfo* leaving;  // what leaves the device when memory is short, in order
  int leaving_count;
  const int* leaving_matrices;                  // placements
  uint64_t reserve_bytes;                       // of the device's memory, left free
  uint64_t io_tokens_bytes, io_sequence_bytes;  // of the tokens' array, and of each of the other five
  bool cuda_graphs;
  /// Asks for the dynamic shared memory that kernels need beyond 48 KiB.
  cudaError_t (*prepare)();
  const VocabularySource* vocabulary;
};

}  // namespace LANE_NAMESPACE
