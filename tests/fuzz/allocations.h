// What this program asks of the heap.
#pragma once
#include <cstddef>

namespace lane::test {

/// Bytes of the greatest single `new` since the last reset.
size_t greatest_allocation();
void reset_greatest_allocation();

}  // namespace lane::test
