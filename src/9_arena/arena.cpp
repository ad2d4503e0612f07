#include "lane/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lane/error.h"
#include "lifetimes.h"

namespace lane {
namespace {

/// The lowest gap of `taken` (ordered by offset, possibly overlapping) that holds `bytes`.
uint64_t first_gap(std::vector<std::pair<uint64_t, uint64_t>>& taken, uint64_t bytes) {
  std::sort(taken.begin(), taken.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin >= at + bytes) break;
    at = std::max(at, end);
  }
  return at;
}

/// For each buffer the others that are needed at the same time.
std::vector<std::vector<size_t>> rivals_of(const Schedule& schedule, const Lifetimes& lifetimes) {
  std::vector<std::vector<size_t>> rivals(schedule.buffers.size());
  for (size_t b = 0; b < rivals.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (lifetimes.disjoint(a, b)) continue;
      rivals[a].push_back(b);
      rivals[b].push_back(a);
    }
  }
  return rivals;
}

/// First fit in the given order.
Arena first_fit(const Schedule& schedule, const std::vector<std::vector<size_t>>& rivals,
                const std::vector<size_t>& order) {
  Arena arena;
  arena.offset.assign(schedule.buffers.size(), 0);
  std::vector<bool> placed(schedule.buffers.size(), false);
  for (size_t b : order) {
    const uint64_t bytes = aligned(schedule.buffers[b]);
    std::vector<std::pair<uint64_t, uint64_t>> taken;
    for (size_t rival : rivals[b]) {
      if (!placed[rival]) continue;
      taken.emplace_back(arena.offset[rival], arena.offset[rival] + aligned(schedule.buffers[rival]));
    }
    arena.offset[b] = first_gap(taken, bytes);
    arena.bytes = std::max(arena.bytes, arena.offset[b] + bytes);
    placed[b] = true;
  }
  return arena;
}

/// Largest first packs best as a rule; by birth is better where sizes are alike. Ties by index: the result is one.
std::vector<std::vector<size_t>> orders(const Schedule& schedule, const Lifetimes& lifetimes) {
  std::vector<size_t> by_size(schedule.buffers.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::vector<size_t> by_birth = by_size, by_death = by_size;
  auto birth = [&](size_t b) { return lifetimes.uses(b).empty() ? 0 : lifetimes.uses(b).front(); };
  auto death = [&](size_t b) { return lifetimes.uses(b).empty() ? 0 : lifetimes.uses(b).back(); };
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return schedule.buffers[a].bytes > schedule.buffers[b].bytes; });
  std::stable_sort(by_birth.begin(), by_birth.end(), [&](size_t a, size_t b) { return birth(a) < birth(b); });
  std::stable_sort(by_death.begin(), by_death.end(), [&](size_t a, size_t b) { return death(a) > death(b); });
  return {by_size, by_birth, by_death};
}

/// Moves the buffers that end highest to the front of the order: placed early, they find room below.
void promote_highest(std::vector<size_t>& order, const Arena& arena, const Schedule& schedule) {
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t b) { return arena.offset[b] + aligned(schedule.buffers[b]) == arena.bytes; });
}

}  // namespace

Arena allocate(const Schedule& schedule, const Branches& branches) {
  constexpr int kTries = 256;  // from each order; a decoder's step is optimal at the first
  const Lifetimes lifetimes(schedule, branches);
  const uint64_t live_bytes = most_live_bytes(schedule, lifetimes);
  const std::vector<std::vector<size_t>> rivals = rivals_of(schedule, lifetimes);
  Arena best;
  best.bytes = UINT64_MAX;
  for (std::vector<size_t> order : orders(schedule, lifetimes)) {
    for (int i = 0; i < kTries && best.bytes > live_bytes; ++i) {
      Arena arena = first_fit(schedule, rivals, order);
      promote_highest(order, arena, schedule);
      if (arena.bytes < best.bytes) best = std::move(arena);
    }
  }
  best.live_bytes = live_bytes;
  return best;
}

void verify(const Arena& arena, const Schedule& schedule, const Branches& branches) {
  const size_t n = schedule.buffers.size();
  if (arena.offset.size() != n)
    throw InternalError(fmt::format("arena: {} offsets for {} buffers", arena.offset.size(), n));
  const Lifetimes lifetimes(schedule, branches);
  for (size_t b = 0; b < n; ++b) {
    const uint64_t end = arena.offset[b] + schedule.buffers[b].bytes;
    if (arena.offset[b] % kAlignment != 0 || end > arena.bytes) {
      throw InternalError(
          fmt::format("arena: '{}' at {} to {} of {}", schedule.buffers[b].name, arena.offset[b], end, arena.bytes));
    }
    for (size_t a = 0; a < b; ++a) {
      const bool apart = arena.offset[a] + schedule.buffers[a].bytes <= arena.offset[b] || end <= arena.offset[a];
      if (apart || lifetimes.disjoint(a, b)) continue;
      throw InternalError(fmt::format("arena: '{}' and '{}' overlap while both are needed", schedule.buffers[a].name,
                                      schedule.buffers[b].name));
    }
  }
  if (arena.live_bytes > arena.bytes) throw InternalError("arena: smaller than what is live at once");
}

std::string to_text(const Arena& arena, const Schedule& schedule) {
  const std::vector<std::vector<int>> uses = uses_of(schedule);
  std::string text = fmt::format("bytes {}\nlive bytes {}\n", arena.bytes, arena.live_bytes);
  for (size_t b = 0; b < arena.offset.size(); ++b) {
    text += fmt::format("{:10} {:10} {}", arena.offset[b], schedule.buffers[b].bytes, schedule.buffers[b].name);
    if (!uses[b].empty()) text += fmt::format(" launches {} to {}", uses[b].front(), uses[b].back());
    text += '\n';
  }
  return text;
}

}  // namespace lane
