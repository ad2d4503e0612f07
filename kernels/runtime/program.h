// What lanec bakes into a program: tables of numbers, and a function for each form. The rest of runtime/ reads them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/check.cuh"
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
};

constexpr int kSidecar = -1;

struct PlacementInfo {
  int shard;               // or kSidecar
  uint64_t offset, bytes;  // in the shard's file or the sidecar's payload
  uint64_t device_offset;  // in the weights' allocation
  Load load;
  int positions;     // RotaryTable: rows
  double magnitude;  // RotaryTable: multiplies cos and sin
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
  Region weights;
  Region state;              // carried state, a block a sequence
  Region arena;              // what a step computes
  Region logits;             // float32, [rows][vocabulary]
  int* tokens = nullptr;     // what the step is fed
  int* positions = nullptr;  // where each sequence stands
  int* slots = nullptr;      // which block of state each sequence has
  int* next = nullptr;       // what the step chose
};

/// The streams of a step, and an event for each launch that another stream waits for.
struct Streams {
  static constexpr int kMost = 4;
  cudaStream_t stream[kMost] = {};
  cudaEvent_t* events = nullptr;
  cudaStream_t operator[](int i) const { return stream[i]; }

  /// What stream `from` has been given so far.
  cudaError_t record(int event, int from) const { return cudaEventRecord(events[event], stream[from]); }
  cudaError_t wait(int event, int on) const { return cudaStreamWaitEvent(stream[on], events[event], 0); }
};

/// One compiled step.
struct FormInfo {
  const char* tag;      // "1", "4", "b4"
  int sequences, rows;  // tokens of a step are sequences * rows
  int events;           // that `step` uses
  cudaError_t (*step)(const Memory& memory, const Streams& streams);
};

struct ProgramInfo {
  const ShardInfo* shards;
  int shard_count;
  uint64_t sidecar_bytes, sidecar_digest;  // of the payload
  const PlacementInfo* placements;
  int placement_count;
  const FormInfo* forms;  // the decode step first, then chunks from the largest to the smallest
  int form_count;
  int context, vocabulary_rows;
  int sequences;  // that the state has room for
  uint64_t weight_bytes, state_bytes, arena_bytes, logits_bytes, io_bytes;
  uint64_t reserve_bytes;                       // of the device's memory, left free
  uint64_t io_tokens_bytes, io_sequence_bytes;  // of the tokens' array, and of each of the other three
  bool cuda_graphs;
  /// Asks for the dynamic shared memory that kernels need beyond 48 KiB.
  cudaError_t (*prepare)();
  const VocabularySource* vocabulary;
};

}  // namespace LANE_NAMESPACE
