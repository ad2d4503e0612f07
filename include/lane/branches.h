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

/// The order that streams and edges imply: which launches have always finished when another starts.
class LaunchOrder {
 public:
  explicit LaunchOrder(const Branches& branches);
  bool before(int a, int b) const { return a != b && last_[size_t(b)][size_t(stream_[size_t(a)])] >= a; }

 private:
  std::vector<int> stream_;
  std::vector<std::vector<int>>
      last_;  // of launch b, on stream s: the latest launch that is before b (or b itself); -1
};

/// What a launch touches that changes during a step. Weights never do.
struct Touch {
  enum class What { Buffer, State, Io, Logits } what = What::Buffer;
  int index = 0;  // of the buffer or the state; of the Io's value
  bool writes = false;
};
std::vector<Touch> touches(const Launch& launch);

Branches branch(const Schedule& schedule, const Options& options, const Chip& chip);
/// Throws InternalError where two launches that touch the same bytes, one writing, are unordered.
void verify(const Branches& branches, const Schedule& schedule);
std::string to_text(const Branches& branches, const Schedule& schedule);

}  // namespace lane
