// The global operators new and delete, replaced: in a file of their own, since a compiler that sees inside both of them
// takes malloc and free for a mismatch.
#include "fuzz/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> greatest = 0;

}  // namespace

void* operator new(size_t bytes) {
  size_t seen = greatest;
  while (bytes > seen && !greatest.compare_exchange_weak(seen, bytes)) {
  }
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace lane::test {

size_t greatest_allocation() { return greatest; }
void reset_greatest_allocation() { greatest = 0; }

}  // namespace lane::test
