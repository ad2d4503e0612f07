#include "leaving.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lane {
namespace {

/// Sets of matrices that some launch reads together, and whether every launch that reads a matrix gathers rows of it.
class Readers {
 public:
  Readers(const std::vector<const Schedule*>& schedules, const Weights& weights)
      : weights_(weights), root_(weights.placements.size()), read_whole_(weights.placements.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    for (const Schedule* schedule : schedules) {
      for (const Launch& launch : schedule->launches) add(launch);
    }
  }

  std::vector<Leaving> together() {
    std::map<int, Leaving> sets;
    for (size_t p = 0; p < root_.size(); ++p) {
      if (!weights_.placements[p].is_matrix()) continue;
      Leaving& set = sets[root(int(p))];
      set.matrices.push_back(int(p));
      set.bytes += aligned(weights_.placements[p].device_bytes);
    }
    std::vector<Leaving> all;
    for (auto& [root, set] : sets) {
      set.gathered = std::ranges::none_of(set.matrices, [&](int p) { return read_whole_[size_t(p)]; });
      all.push_back(std::move(set));
    }
    return all;
  }

 private:
  void add(const Launch& launch) {
    int first = -1;
    for (const Arg& arg : launch.args) {
      const auto* weight = std::get_if<WeightArg>(&arg);
      if (!weight || !weights_.placements[size_t(weight->placement)].is_matrix()) continue;
      if (!launch.kernel->gathers) read_whole_[size_t(weight->placement)] = true;
      if (first >= 0) root_[size_t(root(weight->placement))] = root(first);
      first = weight->placement;
    }
  }
  int root(int p) {
    while (root_[size_t(p)] != p) p = root_[size_t(p)] = root_[size_t(root_[size_t(p)])];
    return p;
  }

  const Weights& weights_;
  std::vector<int> root_;
  std::vector<bool> read_whole_;
};

/// The bits of `i` below 2^24, the other way round: consecutive ranks come far apart.
uint32_t reversed_bits(uint32_t i) {
  uint32_t out = 0;
  for (int bit = 0; bit < 24; ++bit) out |= (i >> bit & 1) << (23 - bit);
  return out;
}

/// Two buffers for one set, held all the time, must stay small beside what leaves.
bool too_large(const Leaving& set, uint64_t mean_bytes) { return set.bytes > 4 * mean_bytes; }

void choose_away(std::vector<Leaving>& sets) {
  uint64_t bytes = 0, count = 0;
  for (const Leaving& set : sets) {
    if (set.gathered) continue;
    bytes += set.bytes;
    ++count;
  }
  for (Leaving& set : sets) {
    if (set.gathered || too_large(set, bytes / std::max<uint64_t>(count, 1))) set.away = Away::Read;
  }
}

void sort_by_cost(std::vector<Leaving>& sets) {
  std::map<uint64_t, uint32_t> seen;  // sets of a size so far
  std::map<int, uint32_t> rank;       // by a set's first matrix: of its size, far from the one before
  for (const Leaving& set : sets) rank[set.matrices[0]] = reversed_bits(seen[set.bytes]++);
  auto key = [&](const Leaving& set) {
    const int turn = set.gathered ? 0 : set.away == Away::Copied ? 1 : 2;
    return std::tuple(turn, set.bytes, rank[set.matrices[0]]);
  };
  std::ranges::stable_sort(sets, [&](const Leaving& a, const Leaving& b) { return key(a) < key(b); });
}

/// Nothing of `sets` is on the device but `fixed_bytes` and the buffers.
void read_there(std::vector<Leaving>& sets, uint64_t fixed_bytes) {
  std::vector<Leaving> copied;
  for (const Leaving& set : sets) {
    if (set.away == Away::Copied) copied.push_back(set);
  }
  for (; !copied.empty(); copied.pop_back()) {
    Leaving set = copied.back();
    set.away = Away::Read;
    set.first = false;
    set.buffer_bytes = copied.size() > 1 ? copied[copied.size() - 2].bytes : 0;
    set.weight_bytes = fixed_bytes + 2 * set.buffer_bytes;
    sets.push_back(set);
  }
}

}  // namespace

std::vector<Leaving> leaving_order(const std::vector<const Schedule*>& schedules, const Weights& weights,
                                   uint64_t weight_bytes) {
  std::vector<Leaving> sets = Readers(schedules, weights).together();
  choose_away(sets);
  sort_by_cost(sets);
  uint64_t buffer = 0;
  for (Leaving& set : sets) {
    weight_bytes -= set.bytes;
    if (set.away == Away::Copied) buffer = std::max(buffer, set.bytes);
    set.buffer_bytes = buffer;
    set.weight_bytes = weight_bytes + 2 * buffer;
  }
  read_there(sets, weight_bytes);
  return sets;
}

}  // namespace lane
