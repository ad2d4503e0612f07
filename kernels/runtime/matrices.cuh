// Where the weights lie: on the device, or, where they do not fit, some matrices in pinned host memory.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/device.cuh"
#include "runtime/program.h"

namespace LANE_NAMESPACE {

class Matrices {
 public:
  explicit Matrices(const ProgramInfo& program) : program_(program) {}

  /// They leave in the order given until all fits `budget` bytes. Refuses where even the least that can stay does not.
  Status choose(uint64_t budget) {
    int least = 0;
    for (left_ = 0; left_ <= program_.leaving_count; ++left_) {
      if (needed(left_) <= budget) return {};
      if (needed(left_) < needed(least)) least = left_;
    }
    left_ = 0;
    return {kExitEnvironment, "Memory: needs " + std::to_string(needed(least)) + " bytes, has " +
                                  std::to_string(budget) + ": " + items(least)};
  }

  cudaError_t allocate() {
    place();
    LANE_TRY(on_device_.allocate(weight_bytes(left_)));
    LANE_TRY(in_host_memory_.allocate(host_bytes_));
    for (int p = 0; p < program_.placement_count; ++p) {
      MatrixPlace& place = places_[size_t(p)];
      place.home = (away_[size_t(p)] ? in_host_memory_.data() : on_device_.data()) + offset_[size_t(p)];
    }
    copies_.places = places_.data();
    copies_.buffer_bytes = buffer_bytes(left_);
    if (copies_.buffer_bytes == 0) return cudaSuccess;
    return make_buffers();
  }

  /// Vectors and tables lie in it as planned.
  Region fixed() const { return {on_device_.data()}; }
  /// Where placement `p` lies.
  uint8_t* home(int p) const { return places_[size_t(p)].home; }
  const Copies& copies() const { return copies_; }

  /// What a person should know of it; empty where everything is on the device.
  std::string summary() const {
    const auto away = std::count(away_.begin(), away_.end(), true);
    if (away == 0) return "";
    return std::to_string(away) + " matrices stay in host memory, " + std::to_string(host_bytes_) +
           " bytes: less device memory is free than the model needs";
  }

 private:
  static uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }
  uint64_t weight_bytes(int left) const {
    return left == 0 ? program_.weight_bytes : program_.leaving[left - 1].weight_bytes;
  }
  uint64_t buffer_bytes(int left) const { return left == 0 ? 0 : program_.leaving[left - 1].buffer_bytes; }
  uint64_t needed(int left) const {
    return weight_bytes(left) + program_.state_bytes + program_.arena_bytes + program_.logits_bytes + program_.io_bytes;
  }
  std::string items(int left) const {
    const uint64_t buffers = 2 * buffer_bytes(left);
    const uint64_t parts[] = {weight_bytes(left) - buffers, buffers,
                              program_.state_bytes,         program_.arena_bytes,
                              program_.logits_bytes,        program_.io_bytes};
    const char* names[] = {"weights", "copy buffers", "carried state", "arena", "logits", "inputs"};
    std::string text;
    for (int i = 0; i < 6; ++i) text += std::string(i ? ", " : "") + names[i] + " " + std::to_string(parts[i]);
    return text;
  }

  /// What is away, and every placement's offset in its memory.
  void place() {
    const size_t count = size_t(program_.placement_count);
    places_.assign(count, {});
    away_.assign(count, false);
    offset_.assign(count, 0);
    const int* matrix = program_.leaving_matrices;
    for (int i = 0; i < left_; ++i) {
      const LeavingInfo& leaving = program_.leaving[i];
      for (int m = 0; m < leaving.matrices; ++m, ++matrix) {
        away_[size_t(*matrix)] = true;
        const bool copied = leaving.away == Away::Copied;
        places_[size_t(*matrix)].copied_bytes = copied ? program_.placements[*matrix].device_bytes : 0;
      }
    }
    host_bytes_ = 0;
    uint64_t staying = program_.fixed_weight_bytes;
    for (size_t p = 0; p < count; ++p) {
      const PlacementInfo& placement = program_.placements[p];
      offset_[p] = placement.device_offset;
      if (placement.device_offset < program_.fixed_weight_bytes) continue;
      uint64_t& end = away_[p] ? host_bytes_ : staying;
      offset_[p] = end;
      end += aligned(placement.device_bytes);
    }
  }

  /// They lie behind the weights that stay.
  cudaError_t make_buffers() {
    LANE_TRY(stream_.create());
    copies_.stream = stream_.get();
    LANE_TRY(begun_.create());
    copies_.begun = begun_.get();
    for (uint64_t b = 0; b < 2; ++b) {
      copies_.buffer[b] = on_device_.data() + weight_bytes(left_) - (2 - b) * copies_.buffer_bytes;
      LANE_TRY(filled_[b].create());
      LANE_TRY(read_[b].create());
      copies_.filled[b] = filled_[b].get();
      copies_.read[b] = read_[b].get();
    }
    return cudaSuccess;
  }

  const ProgramInfo& program_;
  int left_ = 0;  // how many of program_.leaving are away
  DeviceBlock on_device_;
  PinnedBlock in_host_memory_;
  uint64_t host_bytes_ = 0;
  std::vector<MatrixPlace> places_;
  std::vector<bool> away_;
  std::vector<uint64_t> offset_;
  Copies copies_;
  Stream stream_;
  Event begun_, filled_[2], read_[2];
};

}  // namespace LANE_NAMESPACE
