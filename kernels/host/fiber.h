// The host chip: a fiber is a stack and the place where it stopped. The switch is Boost.Context's; the sanitizers are
// told of each one by hand.
#pragma once
#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
// The scheduler's own accesses are no races; TSan is to see the kernels' alone.
#define HOST_CHIP_INTERNAL __attribute__((no_sanitize("thread")))
#define HOST_CHIP_INLINE HOST_CHIP_INTERNAL inline
#define HOST_CHIP_RELEASE(object) __tsan_release(object)
#define HOST_CHIP_ACQUIRE(object) __tsan_acquire(object)
#else
#define HOST_CHIP_INTERNAL
// Inlined, since every return after a switch is mispredicted.
#define HOST_CHIP_INLINE __attribute__((always_inline)) inline
#define HOST_CHIP_RELEASE(object) (void)(object)
#define HOST_CHIP_ACQUIRE(object) (void)(object)
#endif

namespace host_chip {

namespace context = boost::context::detail;

/// An integer from the environment, or `otherwise`.
inline long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

/// `resume` is where it goes on; the lowest address and size of its stack are what ASan wants to know.
struct Fiber {
  context::fcontext_t resume = nullptr;
  char* stack = nullptr;
  size_t stack_bytes = 0;
  void* asan_stack = nullptr;
  void* tsan_fiber = nullptr;
};

/// The entry of every fiber: a loop that runs threads (block.h). It never returns.
HOST_CHIP_INTERNAL inline void run_threads();

HOST_CHIP_INTERNAL inline void fiber_entry(context::transfer_t from) {
  static_cast<Fiber*>(from.data)->resume = from.fctx;
  run_threads();
}

/// Leaves `from`, goes on in `to`; returns when something switches back to `from`.
HOST_CHIP_INLINE void switch_fiber(Fiber& from, Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.asan_stack, to.stack, to.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  // Without synchronization, so that only barriers order threads: this makes TSan a race checker for kernels.
  __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
  const context::transfer_t back = context::jump_fcontext(to.resume, &from);
  static_cast<Fiber*>(back.data)->resume = back.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.asan_stack, nullptr, nullptr);
#endif
}

/// A fiber with a stack of its own; `index` staggers the tops, since tops a page apart share their cache sets. Stacks
/// stay mapped for good: a suspended frame's shadow memory would outlive it. Null without memory.
HOST_CHIP_INTERNAL inline Fiber* make_fiber(unsigned index) {
  static const size_t bytes = static_cast<size_t>(setting("HOST_CHIP_STACK_KB", 64)) << 10;
  constexpr size_t kGuard = 4096, kCacheLine = 64;
  void* memory =
      mmap(nullptr, bytes + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  mprotect(memory, kGuard, PROT_NONE);  // an overflow faults
  Fiber* fiber = new Fiber;
  fiber->stack = static_cast<char*>(memory) + kGuard;
  fiber->stack_bytes = bytes;
  char* top = fiber->stack + bytes - index * 5 % 61 * kCacheLine;
  fiber->resume = context::make_fcontext(top, static_cast<size_t>(top - fiber->stack), fiber_entry);
#if defined(__SANITIZE_THREAD__)
  fiber->tsan_fiber = __tsan_create_fiber(0);
#endif
  return fiber;
}

}  // namespace host_chip
