// Pass 8: which launches of a Schedule may run side by side in the captured graph.
#pragma once
#include <string>
#include <vector>

#include "lane/chip.h"
#include "lane/plan.h"

namespace lane {

/// Launch i runs on stream `stream[i]` (0: the main one) after the launches `after[i]`, all earlier. Everything is
/// joined on stream 0 at the end.
struct Branches {
  std::vector<int> stream;
  std::vector<std::vector<int>> after;  // only edges between streams; order within a stream is the Schedule's
  int streams = 1;
};

Branches branch(const Schedule& schedule, const Options& options, const Chip& chip);
/// Throws InternalError where two launches that touch the same bytes, one writing, are unordered.
void verify(const Branches& branches, const Schedule& schedule);
std::string to_text(const Branches& branches, const Schedule& schedule);

}  // namespace lane
