// What a checkpoint's tensors of one type sum up to.
#pragma once
#include <cstdint>
#include <map>

#include "lane/gguf.h"

namespace lane {

struct Total {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

/// By the format's id.
inline std::map<int32_t, Total> totals(const Checkpoint& checkpoint) {
  std::map<int32_t, Total> totals;
  for (const TensorInfo& t : checkpoint.tensors) {
    Total& total = totals[t.format->id];
    total.tensors++;
    total.elements += t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3];
    total.bytes += t.bytes;
  }
  return totals;
}

}  // namespace lane
