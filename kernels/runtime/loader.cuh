// Weights on their way to the device. Each shard's data is read once, in pieces, through pinned buffers: while one
// piece is copied, the next ones are read and digested, a thread each.
#pragma once
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/launch.cuh"
#include "ops/position.cuh"
#include "runtime/checkpoint.h"
#include "runtime/device.cuh"
#include "runtime/matrices.cuh"
#include "runtime/pieces.h"
#include "runtime/sidecar.h"

namespace LANE_NAMESPACE {

/// float16 to float32, exactly.
inline float widen_float16(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 1023u;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = float(fraction) * 5.9604644775390625e-8f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline float widen_bfloat16(uint16_t h) {
  const uint32_t bits = uint32_t(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

class Loader {
  static constexpr unsigned kMostBuffers = 16;  // pinning takes a third of a millisecond a MiB

  /// A pinned buffer for a piece.
  struct Staging {
    PinnedBlock block;
    Event copied;  // its piece, out of it
  };

 public:
  Loader(const ProgramInfo& program, const Matrices& matrices) : program_(program), matrices_(matrices) {}

  /// `check_data`: refuse data whose digest is not the one of the compile.
  Status load(const Shards& shards, const Sidecar& sidecar, bool check_data) {
    held_.resize(size_t(program_.placement_count));
    if (Status s = allocate(); !s.ok()) return s;
    for (int i = 0; i < program_.shard_count; ++i) {
      if (Status s = load_shard(i, shards.files[size_t(i)], check_data); !s.ok()) return s;
    }
    for (int p = 0; p < program_.placement_count; ++p) {
      if (Status s = finish(program_.placements[p], held_[size_t(p)], sidecar); !s.ok()) return s;
      if (Status s = cuda_status(find_bad_at_home(p), "checking the weights"); !s.ok()) return s;
    }
    return check_finite(shards);
  }

 private:
  Status allocate() {
    uint64_t longest = 0;
    for (int i = 0; i < program_.shard_count; ++i) {
      longest = std::max(longest, program_.shards[i].file_bytes - program_.shards[i].data_start);
    }
    cudaError_t error = stream_.create();
    uint64_t longest_row = 0;
    for (int p = 0; p < program_.placement_count; ++p) {
      const PlacementInfo& placement = program_.placements[p];
      if (placement.load == Load::Repacked)
        longest_row = std::max(longest_row, placement.bytes / uint64_t(placement.rows));
    }
    if (error == cudaSuccess && longest_row)
      error = stored_.allocate(std::min<uint64_t>(longest, kPieceBytes) + longest_row);
    const uint64_t pieces = (longest + kPieceBytes - 1) / kPieceBytes;
    const uint64_t most = std::clamp(std::thread::hardware_concurrency(), 2u, kMostBuffers);
    staging_.resize(size_t(std::min(std::max<uint64_t>(pieces, 1), most)));
    for (Staging& staging : staging_) {
      if (error == cudaSuccess) error = staging.block.allocate(std::min<uint64_t>(longest, kPieceBytes));
      if (error == cudaSuccess) error = staging.copied.create();
    }
    const uint64_t first_bytes = uint64_t(program_.placement_count) * sizeof(unsigned long long);
    if (error == cudaSuccess) error = first_bad_.allocate(first_bytes);
    if (error == cudaSuccess) error = cudaMemsetAsync(first_bad_.data(), 0xff, first_bytes, stream_.get());
    return cuda_status(error, "allocating the staging buffers");
  }

  Status load_shard(int shard, const File& file, bool check_data) {
    const ShardInfo& info = program_.shards[shard];
    PieceReader reader(file, info.data_start, info.file_bytes, kPieceBytes);
    PieceDigest sum;
    for (size_t started = 0, taken = 0; !reader.all_started() || reader.in_flight() > 0; ++taken) {
      // One buffer's piece is being copied while the others' are being read.
      while (!reader.all_started() && (started == taken || started - taken + 1 < staging_.size())) {
        const Staging& staging = staging_[started++ % staging_.size()];
        const cudaError_t error = cudaEventSynchronize(staging.copied.get());
        if (error != cudaSuccess) return cuda_status(error, "loading the weights");
        reader.start(staging.block.data());
      }
      const Piece piece = reader.take();
      if (!piece.status.ok()) return piece.status;
      sum.add(piece.digest);
      cudaError_t error = upload(shard, piece);
      if (error == cudaSuccess) error = cudaEventRecord(staging_[taken % staging_.size()].copied.get(), stream_.get());
      if (error != cudaSuccess) return cuda_status(error, "loading the weights");
    }
    if (!check_data || sum.value() == info.data_digest) return {};
    return checkpoint_error(file.path() +
                            ": found other weights than when this program was compiled; expected the same "
                            "file (--allow-weights-change accepts one that differs in its weights alone)");
  }

  /// A piece of the shard's file, to every placement it has a part of: first the one that began in an earlier piece,
  /// last the one that goes on in the next, for a row of it waits (see repack).
  cudaError_t upload(int shard, const Piece& piece) {
    const uint64_t begin = piece.at, end = piece.at + piece.bytes;
    for (int turn = 0; turn < 3; ++turn) {
      for (int i = 0; i < program_.placement_count; ++i) {
        const PlacementInfo& p = program_.placements[i];
        const uint64_t from = std::max(begin, p.offset), to = std::min(end, p.offset + p.bytes);
        if (p.shard != shard || from >= to || turn != (from > p.offset ? 0 : to < p.offset + p.bytes ? 2 : 1)) continue;
        LANE_TRY(upload_part(i, piece.data + (from - begin), from - p.offset, to - from));
      }
    }
    return cudaSuccess;
  }

  /// `bytes` bytes of placement `i` from its byte `at` on.
  cudaError_t upload_part(int i, const uint8_t* part, uint64_t at, uint64_t bytes) {
    const PlacementInfo& p = program_.placements[i];
    if (p.load == Load::Float16 || p.load == Load::BFloat16) {
      held_[size_t(i)].insert(held_[size_t(i)].end(), part, part + bytes);
      return cudaSuccess;
    }
    if (p.load == Load::Repacked) return repack(i, part, at, bytes);
    return cudaMemcpyAsync(matrices_.home(i) + at, part, bytes, cudaMemcpyDefault, stream_.get());
  }

  /// `bytes` bytes of a matrix from byte `at` on: its rows that are complete now go to their place, and the last one's
  /// beginning waits for the next piece. A file's pieces come in order, so only one row waits at a time.
  cudaError_t repack(int i, const uint8_t* part, uint64_t at, uint64_t bytes) {
    const PlacementInfo& p = program_.placements[i];
    constexpr int kThreads = 256, kBlock = 32;
    const uint64_t row_bytes = p.bytes / uint64_t(p.rows), waiting = at % row_bytes, have = waiting + bytes;
    const int first = int(at / row_bytes), rows = int(have / row_bytes);
    LANE_TRY(cudaMemcpyAsync(stored_.data() + waiting, part, bytes, cudaMemcpyHostToDevice, stream_.get()));
    if (rows == 0) return cudaSuccess;
    LANE_TRY(find_bad(i, stored_.data(), first, rows, row_bytes));
    const uint64_t threads = uint64_t(rows) * uint64_t(p.columns / kBlock);
    LANE_TRY(launch(stream_.get(), dim3(unsigned((threads + kThreads - 1) / kThreads)), dim3(kThreads), 0, p.repack,
                    Address{matrices_.home(i)}, Address{stored_.data()}, first, rows, p.rows, p.columns));
    const uint64_t left = have % row_bytes;
    if (left == 0) return cudaSuccess;
    return cudaMemcpyAsync(stored_.data(), stored_.data() + (have - left), left, cudaMemcpyDeviceToDevice,
                           stream_.get());
  }

  Address fixed(const PlacementInfo& p) const { return matrices_.fixed()(p.device_offset); }

  /// What is not a copy of the file's bytes.
  Status finish(const PlacementInfo& p, const std::vector<uint8_t>& halves, const Sidecar& sidecar) {
    cudaError_t error = cudaSuccess;
    if (p.load == Load::Float16 || p.load == Load::BFloat16) {
      error = widen(p, halves);
    } else if (p.load == Load::RotaryTable) {
      error = make_rotary_table(p, sidecar.payload.data() + p.offset);
    } else if (p.shard == kSidecar) {
      error = copy(fixed(p).byte, sidecar.payload.data() + p.offset, p.bytes);
    }
    return cuda_status(error, "loading the weights");
  }

  /// Ends before it returns: `from` need not live longer.
  cudaError_t copy(uint8_t* to, const void* from, size_t bytes) {
    LANE_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()));
    return cudaStreamSynchronize(stream_.get());
  }

  cudaError_t widen(const PlacementInfo& p, const std::vector<uint8_t>& halves) {
    std::vector<float> floats(halves.size() / 2);
    for (size_t i = 0; i < floats.size(); ++i) {
      uint16_t half;
      std::memcpy(&half, &halves[2 * i], 2);
      floats[i] = p.load == Load::Float16 ? widen_float16(half) : widen_bfloat16(half);
    }
    return copy(fixed(p).byte, floats.data(), floats.size() * 4);
  }

  cudaError_t make_rotary_table(const PlacementInfo& p, const uint8_t* frequencies) {
    constexpr int kThreads = 256;
    const int pairs = int(p.bytes / sizeof(double)), count = p.rows * pairs;
    DeviceBlock on_device;
    LANE_TRY(on_device.allocate(p.bytes));
    LANE_TRY(copy(on_device.data(), frequencies, p.bytes));
    LANE_TRY(launch(stream_.get(), dim3(unsigned(count + kThreads - 1) / kThreads), dim3(kThreads), 0, rotary_table,
                    fixed(p), Address{on_device.data()}, count, pairs, p.magnitude));
    return cudaStreamSynchronize(stream_.get());
  }

  /// Placements that lie as stored, or as floats; repacked ones were looked at on their way.
  cudaError_t find_bad_at_home(int i) {
    const PlacementInfo& p = program_.placements[i];
    if (!p.finite || p.load == Load::Repacked) return cudaSuccess;
    return find_bad(i, matrices_.home(i), 0, p.rows, p.device_bytes / uint64_t(p.rows));
  }

  /// Looks for weights that are no numbers among `rows` rows at `stored`, the first of which is row `first`.
  cudaError_t find_bad(int i, const uint8_t* stored, int first, int rows, uint64_t row_bytes) {
    constexpr int kThreads = 256, kGroup = 32, kMostWeights = 1 << 30;
    const PlacementInfo& p = program_.placements[i];
    unsigned long long* const bad = Address{first_bad_.data()};
    for (const int most = std::max(1, kMostWeights / p.columns); rows > 0; first += most, rows -= most) {
      const int64_t count = int64_t(std::min(rows, most)) * p.columns;
      const int64_t threads = (count + kGroup - 1) / kGroup;
      LANE_TRY(launch(stream_.get(), dim3(unsigned((threads + kThreads - 1) / kThreads)), dim3(kThreads), 0, p.finite,
                      bad + i, stored, int64_t(first) * p.columns, count));
      stored += uint64_t(most) * row_bytes;
    }
    return cudaSuccess;
  }

  Status check_finite(const Shards& shards) {
    std::vector<unsigned long long> first(size_t(program_.placement_count));
    cudaError_t error = cudaMemcpyAsync(first.data(), first_bad_.data(), first.size() * sizeof first[0],
                                        cudaMemcpyDeviceToHost, stream_.get());
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream_.get());
    if (error != cudaSuccess) return cuda_status(error, "loading the weights");
    for (size_t i = 0; i < first.size(); ++i) {
      const PlacementInfo& p = program_.placements[i];
      if (first[i] == ~0ull) continue;
      const auto columns = static_cast<unsigned long long>(p.columns);
      return checkpoint_error(shards.files[size_t(std::max(p.shard, 0))].path() + ": '" + p.name + "': weight " +
                              std::to_string(first[i]) + " (row " + std::to_string(first[i] / columns) + ", column " +
                              std::to_string(first[i] % columns) +
                              "): found no finite number; expected finite scales and weights");
    }
    return {};
  }

  const ProgramInfo& program_;
  const Matrices& matrices_;
  Stream stream_;
  std::vector<Staging> staging_;
  DeviceBlock stored_;                      // rows on their way to being repacked
  DeviceBlock first_bad_;                   // of each placement: the lowest index of a weight that is no number
  std::vector<std::vector<uint8_t>> held_;  // of each placement: float16 bytes to be widened
};

}  // namespace LANE_NAMESPACE
