// Pass 9: where every step-local array lives.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lane/branches.h"
#include "lane/plan.h"

namespace lane {

/// Two ranges overlap only if the buffers' lifetimes, counted in launches and with branches taken into account, are
/// disjoint.
struct Arena {
  std::vector<uint64_t> offset;  // of each Buffer, bytes, 256-aligned
  uint64_t bytes = 0;
  uint64_t live_bytes = 0;  // the most that may be live at once: no placement is smaller
};

Arena allocate(const Schedule& schedule, const Branches& branches);
void verify(const Arena& arena, const Schedule& schedule, const Branches& branches);
std::string to_text(const Arena& arena, const Schedule& schedule);

}  // namespace lane
