// When each step-local array is needed, and how many bytes are at most.
#pragma once
#include <cstdint>
#include <vector>

#include "lane/branches.h"
#include "lane/plan.h"

namespace lane {

constexpr uint64_t kAlignment = 256;

/// What a buffer takes in the arena.
inline uint64_t aligned(const Buffer& buffer) { return (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// For each buffer the launches that touch it, in order.
std::vector<std::vector<int>> uses_of(const Schedule& schedule);

/// The order of lifetimes: one precedes another if every launch that touches the first has always finished before any
/// that touches the second starts. Two of which neither precedes the other may be live at once.
class Lifetimes {
 public:
  Lifetimes(const Schedule& schedule, const Branches& branches) : uses_(uses_of(schedule)), order_(branches) {}

  const std::vector<int>& uses(size_t buffer) const { return uses_[buffer]; }
  bool precedes(size_t a, size_t b) const;
  bool disjoint(size_t a, size_t b) const { return precedes(a, b) || precedes(b, a); }

 private:
  std::vector<std::vector<int>> uses_;
  LaunchOrder order_;
};

/// The most bytes that may be live at once: of all sets of buffers, any two of which may be, the heaviest.
uint64_t most_live_bytes(const Schedule& schedule, const Lifetimes& lifetimes);

}  // namespace lane
