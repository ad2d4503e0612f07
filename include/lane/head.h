// The head of a chunk: which launches of its Schedule make logits of a row.
//
// note [the head of a chunk's rows]
// A chunk's step computes the logits of its last row alone: a launch reads that row of an array, and those after it
// make logits of it, before the step chooses. The array stays whole until the step's end, so that the same launches,
// from another row on, make that row's logits when somebody wants them.
#pragma once
#include <cstdint>
#include <optional>

#include "lane/plan.h"

namespace lane {

struct Head {
  int first = 0, end = 0;  // launches, the end not included
  int buffer = 0;          // the array, a row for each of the chunk's
  uint64_t row_bytes = 0;  // of it
};

/// None where no launch reads one row of a chunk's: decode steps and batches make every row's logits. Throws
/// InternalError where a chunk's launches are not as the note says: they would read, from another row on, what belongs
/// to the last.
std::optional<Head> head_of(const Schedule& schedule);

}  // namespace lane
