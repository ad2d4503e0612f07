#include "lifetimes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lane/head.h"

namespace lane {
namespace {

// note [the most bytes live at once]
// Buffers that may be live at once are a set in which none precedes another: an antichain. Its heaviest weighs, by
// Dilworth's theorem for weights, what the fewest chains weigh that cover every byte: all bytes, less the most that can
// be handed on, where a buffer hands each byte to at most one buffer that it precedes, and gets at most its own size.
// What is handed on is a flow from givers to takers; it is enlarged along shortest paths (Edmonds and Karp) until no
// path is left.
class HandingOn {
 public:
  HandingOn(const Schedule& schedule, const Lifetimes& lifetimes) : later_(schedule.buffers.size()) {
    for (size_t a = 0; a < later_.size(); ++a) {
      const bool used = !lifetimes.uses(a).empty();
      has_.push_back(used ? aligned(schedule.buffers[a]) : 0);
      for (size_t b = 0; b < later_.size() && used; ++b) {
        if (!lifetimes.uses(b).empty() && lifetimes.precedes(a, b)) later_[a].push_back(b);
      }
    }
    wants_ = has_;
    given_.resize(later_.size());
  }

  uint64_t most() {
    uint64_t bytes = 0;
    while (const std::optional<size_t> taker = find_path()) bytes += enlarge(*taker);
    return bytes;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  /// From givers that have bytes left to a taker that wants some, which is returned. A taker without wants may get
  /// bytes from one giver instead of another, which then has them to give.
  std::optional<size_t> find_path() {
    giver_of_.assign(later_.size(), kNone);
    taker_of_.assign(later_.size(), kNone);
    std::vector<size_t> givers;
    std::vector<bool> reached(later_.size(), false);
    for (size_t a = 0; a < has_.size(); ++a) {
      if (has_[a] == 0) continue;
      givers.push_back(a);
      reached[a] = true;
    }
    for (size_t i = 0; i < givers.size(); ++i) {
      for (const size_t taker : later_[givers[i]]) {
        if (giver_of_[taker] != kNone) continue;
        giver_of_[taker] = givers[i];
        if (wants_[taker] > 0) return taker;
        for (const auto& [other, bytes] : given_[taker]) {
          if (bytes == 0 || reached[other]) continue;
          reached[other] = true;
          taker_of_[other] = taker;
          givers.push_back(other);
        }
      }
    }
    return std::nullopt;
  }

  /// Hands on along the path that find_path() found as much as goes.
  uint64_t enlarge(size_t last) {
    uint64_t bytes = wants_[last];
    size_t giver = giver_of_[last];
    for (; taker_of_[giver] != kNone; giver = giver_of_[taker_of_[giver]])
      bytes = std::min(bytes, given_[taker_of_[giver]].at(giver));
    bytes = std::min(bytes, has_[giver]);
    wants_[last] -= bytes;
    has_[giver] -= bytes;
    for (size_t taker = last; taker != kNone; taker = taker_of_[giver]) {
      giver = giver_of_[taker];
      given_[taker][giver] += bytes;
      if (taker_of_[giver] != kNone) given_[taker_of_[giver]][giver] -= bytes;
    }
    return bytes;
  }

  std::vector<std::vector<size_t>> later_;         // of each buffer, those it precedes
  std::vector<uint64_t> has_, wants_;              // bytes still to give and to get
  std::vector<std::map<size_t, uint64_t>> given_;  // to each buffer, by giver
  std::vector<size_t> giver_of_, taker_of_;        // the path: who gives to a taker; to whom a giver gave before
};

}  // namespace

std::vector<std::vector<int>> uses_of(const Schedule& schedule) {
  std::vector<std::vector<int>> uses(schedule.buffers.size());
  for (size_t i = 0; i < schedule.launches.size(); ++i) {
    for (const Touch& t : touches(schedule.launches[i])) {
      if (t.what != Touch::What::Buffer) continue;
      std::vector<int>& list = uses[size_t(t.index)];
      if (list.empty() || list.back() != int(i)) list.push_back(int(i));
    }
  }
  // note [the head of a chunk's rows], include/lane/head.h
  if (const auto head = head_of(schedule)) uses[size_t(head->buffer)].push_back(int(schedule.launches.size()) - 1);
  return uses;
}

bool Lifetimes::precedes(size_t a, size_t b) const {
  if (!uses_[a].empty() && !uses_[b].empty() && uses_[a].front() > uses_[b].back()) return false;
  for (int x : uses_[a]) {
    for (int y : uses_[b]) {
      if (!order_.before(x, y)) return false;
    }
  }
  return true;
}

uint64_t most_live_bytes(const Schedule& schedule, const Lifetimes& lifetimes) {
  uint64_t bytes = 0;
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    if (!lifetimes.uses(b).empty()) bytes += aligned(schedule.buffers[b]);
  }
  return bytes - HandingOn(schedule, lifetimes).most();
}

}  // namespace lane
