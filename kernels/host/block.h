// The host chip: one OS thread runs whole blocks. A block's threads run one after the other on one stack; a thread gets
// a fiber of its own only when it blocks, so a kernel that never blocks never switches.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "host/fiber.h"
#include "host/types.h"

// Variables, not macros: cudaLaunchConfig_t has members of these names.
inline thread_local uint3 blockIdx{0, 0, 0};
inline thread_local dim3 blockDim{}, gridDim{};

namespace host_chip {

constexpr unsigned kLanes = 32, kMaxThreads = 1024, kMaxWarps = kMaxThreads / kLanes;
constexpr int kLeader = 31;        // the lane that gets a sum_to_leader's result
constexpr unsigned kPending = 64;  // sums that lanes may deposit ahead of their leader

/// Threads wait until `generation` moves on. `line` is the source line all of them must have come from.
struct Barrier {
  unsigned generation = 0, arrived = 0;
  int line = 0;
  char order[2];  // TSan's objects of happens-before, by parity of the generation
};

struct Warp;
/// Runs once, in the last lane to arrive: turns what each lane put in into what each gets.
using Combine = void (*)(Warp&, uint64_t* slots);

struct Warp {
  Barrier barrier, deposits;
  uint32_t live = 0;  // lanes that have not returned, a bit each
  unsigned live_count = 0;
  // The collective under way.
  bool needs_all_lanes = false;
  Combine combine = nullptr;
  uint64_t slots[2][kLanes];  // by parity of the barrier's generation: a fast lane may enter the next one
  // Sums on their way to the leader, a ring.
  unsigned sums_taken = 0;
  uint8_t deposited[kPending];
  uint64_t deposit[kPending][kLanes];
};

enum class State : uint8_t { New, Running, Exited };

struct Thread {
  uint3 index;
  Warp* warp;
  Fiber* fiber;
  Barrier* waits_for;
  unsigned waits_generation;
  int lane;
  unsigned sums_given;
  State state;
};

/// A kernel's call with its arguments bound, and its geometry.
struct Launch {
  void (*call)(const void*);
  const void* arguments;
  dim3 grid, block;
  size_t shared_bytes;
};

/// What one OS thread needs to run blocks. Plain arrays: TSan would look into std::vector.
struct Worker {
  Launch* launch = nullptr;
  Thread threads[kMaxThreads];
  Warp warps[kMaxWarps];
  Barrier barrier;
  unsigned thread_count = 0, warp_count = 0, live = 0;
  Thread* next = nullptr;  // the new thread that the next fiber starts with
  Fiber main;
  Fiber* running = nullptr;
  Fiber *free_fibers[kMaxThreads + 1], *fibers[kMaxThreads + 1];
  unsigned free_count = 0, fiber_count = 0;
  unsigned char* shared = nullptr;
  size_t shared_capacity = 0;
  char order_begin, order_end;

  ~Worker() {
    for (unsigned i = 0; i < fiber_count; i++) delete fibers[i];
    std::free(shared);
  }
};

inline thread_local Worker* worker = nullptr;
inline thread_local Thread* current = nullptr;
inline thread_local unsigned char* dynamic_shared = nullptr;

/// A kernel's fault that a GPU would answer with a hang or with garbage.
[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "host chip: %s", what);
  if (current) {
    const uint3 b = blockIdx, t = current->index;
    std::fprintf(stderr, " [block %u,%u,%u thread %u,%u,%u]", b.x, b.y, b.z, t.x, t.y, t.z);
  }
  std::fputc('\n', stderr);
  std::abort();
}

// Values that a block hands to blocks of higher indices, one by one: they may run on another OS thread.

inline void publish(float* to, float v) { __atomic_store(to, &v, __ATOMIC_RELEASE); }
inline float read_published(const float* from) {
  float v;
  __atomic_load(from, &v, __ATOMIC_ACQUIRE);
  return v;
}
template <class Float4>
Float4 read_published(const Float4* from) {
  return Float4{read_published(&from->x), read_published(&from->y), read_published(&from->z), read_published(&from->w)};
}
inline unsigned most_tries = 1u << 24;  // reads of a value that is not there, before nobody is believed to owe it
/// Called as long as such a value is not there, `tries` times before. Blocks are handed out in the order of their
/// indices, and each runs to its end: the one that owes it is at work.
inline void await_other_block(unsigned tries) {
  if (tries > most_tries) fail("a value that no other block publishes");
  std::this_thread::yield();
}

HOST_CHIP_INLINE void switch_to(Fiber& from, Fiber& to) {
  worker->running = &to;
  switch_fiber(from, to);
}

HOST_CHIP_INTERNAL inline Fiber* add_fiber() {
  Fiber* fiber = make_fiber(worker->fiber_count);
  if (!fiber) fail("out of memory for fiber stacks");
  return worker->fibers[worker->fiber_count++] = fiber;
}

/// A fiber for a thread that has not run yet. TSan follows fibers, so there each thread has its own.
HOST_CHIP_INTERNAL inline Fiber* fiber_for(const Thread* thread) {
#if defined(__SANITIZE_THREAD__)
  return worker->fibers[thread - worker->threads];
#else
  (void)thread;
  return worker->free_count ? worker->free_fibers[--worker->free_count] : add_fiber();
#endif
}

HOST_CHIP_INTERNAL inline bool runnable(const Thread& t) {
  if (t.state == State::New) return true;
  return t.state == State::Running && (!t.waits_for || t.waits_for->generation != t.waits_generation);
}

HOST_CHIP_INTERNAL inline Thread* first_live(const Warp& warp, uint32_t among) {
  const unsigned first = static_cast<unsigned>(&warp - worker->warps) * kLanes;
  return &worker->threads[first + static_cast<unsigned>(__builtin_ctz(among))];
}

/// The thread to run after t: its warp's next lane, then the next warps; null if all wait. Uniform code finds it in the
/// first two tries.
HOST_CHIP_INTERNAL inline Thread* pick_next(Thread* t) {
  Warp& warp = *t->warp;
  if (t->lane != kLanes - 1 && t[1].warp == &warp && runnable(t[1])) return t + 1;
  if (warp.live) {
    const uint32_t later = t->lane == kLanes - 1 ? 0 : warp.live & (~0u << (t->lane + 1));
    Thread* candidate = first_live(warp, later ? later : warp.live);
    if (runnable(*candidate)) return candidate;
  }
  const unsigned index = static_cast<unsigned>(&warp - worker->warps);
  for (unsigned k = 1; k < worker->warp_count; k++) {
    const Warp& other = worker->warps[(index + k) % worker->warp_count];
    if (!other.live) continue;
    Thread* candidate = first_live(other, other.live);
    if (runnable(*candidate)) return candidate;
  }
  for (unsigned k = 0; k < worker->thread_count; k++) {
    const unsigned at = index * kLanes + static_cast<unsigned>(t->lane) + k;
    Thread* candidate = &worker->threads[at % worker->thread_count];
    if (candidate != t && runnable(*candidate)) return candidate;
  }
  return nullptr;
}

/// The current thread sleeps until the barrier's generation moves on.
HOST_CHIP_INLINE void wait_at(Barrier& barrier) {
  Thread* t = current;
  t->waits_for = &barrier;
  t->waits_generation = barrier.generation;
  while (t->waits_generation == barrier.generation) {
    Thread* next = pick_next(t);
    if (!next) fail("deadlock: every thread of the block waits (divergent __syncthreads or warp collective)");
    Fiber* fiber = next->fiber;
    if (next->state == State::New) {
      worker->next = next;
      fiber = fiber_for(next);
    }
    current = next;
    switch_to(*t->fiber, *fiber);
  }
  t->waits_for = nullptr;
}

HOST_CHIP_INTERNAL inline void open(Barrier& barrier) {
  barrier.arrived = 0;
  barrier.generation++;
}

HOST_CHIP_INTERNAL inline void finish_collective(Warp& warp) {
  if (warp.needs_all_lanes && warp.live != ~0u) {
    fail("a shuffle or reduction without all 32 lanes of the warp (undefined on a GPU)");
  }
  if (warp.combine) warp.combine(warp, warp.slots[warp.barrier.generation & 1]);
  open(warp.barrier);
}

/// t's kernel returned. Exited threads do not count at barriers, so the last to be awaited may open one. The next
/// thread to run, or null at the block's end.
HOST_CHIP_INTERNAL inline Thread* finish_thread(Thread* t) {
  Warp& warp = *t->warp;
  t->state = State::Exited;
  warp.live &= ~(1u << t->lane);
  warp.live_count--;
  if (--worker->live == 0) return nullptr;
  if (warp.barrier.arrived && warp.barrier.arrived == warp.live_count) finish_collective(warp);
  if (worker->barrier.arrived && worker->barrier.arrived == worker->live) open(worker->barrier);
  Thread* next = pick_next(t);
  if (!next) fail("deadlock: a thread returned and the others wait for it");
  return next;
}

HOST_CHIP_INTERNAL inline void run_threads() {
  Worker& w = *worker;
  Fiber* const self = w.running;
#if defined(__SANITIZE_ADDRESS__)
  const void* stack;
  size_t bytes;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
  if (!w.main.stack) {  // the first switch came from the OS thread's stack
    w.main.stack = static_cast<char*>(const_cast<void*>(stack));
    w.main.stack_bytes = bytes;
  }
#endif
  for (;;) {
    Thread* t = w.next;
    current = t;
    t->fiber = self;
    t->state = State::Running;
    HOST_CHIP_ACQUIRE(&w.order_begin);
    w.launch->call(w.launch->arguments);
    HOST_CHIP_RELEASE(&w.order_end);
    Thread* next = finish_thread(t);
    const bool is_new = next && next->state == State::New;
    if (is_new) w.next = next;
#if !defined(__SANITIZE_THREAD__)
    if (is_new) continue;  // the same stack again
    w.free_fibers[w.free_count++] = self;
#endif
    if (is_new) {
      switch_to(*self, *fiber_for(next));
    } else {
      current = next;
      switch_to(*self, next ? *next->fiber : w.main);
    }
  }
}

HOST_CHIP_INTERNAL inline void run_block() {
  Worker& w = *worker;
  for (unsigned i = 0; i < w.warp_count; i++) {
    Warp& warp = w.warps[i];
    warp.live_count = std::min(kLanes, w.thread_count - i * kLanes);
    warp.live = warp.live_count == kLanes ? ~0u : (1u << warp.live_count) - 1;
    warp.barrier.arrived = warp.deposits.arrived = 0;
    warp.sums_taken = 0;
    std::memset(warp.deposited, 0, sizeof warp.deposited);
  }
  for (unsigned i = 0; i < w.thread_count; i++) {
    w.threads[i].state = State::New;
    w.threads[i].sums_given = 0;
  }
  w.live = w.thread_count;
  w.barrier.arrived = 0;
  w.next = &w.threads[0];
#if defined(__SANITIZE_THREAD__)
  while (w.fiber_count < w.thread_count) add_fiber();  // here, since making one orders it after its maker
#endif
  HOST_CHIP_RELEASE(&w.order_begin);
  switch_to(w.main, *fiber_for(w.next));
  HOST_CHIP_ACQUIRE(&w.order_end);
  current = nullptr;
}

inline void make_worker() {
  static thread_local std::unique_ptr<Worker> mine;
  mine.reset(new Worker());
  worker = mine.get();
#if defined(__SANITIZE_THREAD__)
  worker->main.tsan_fiber = __tsan_get_current_fiber();
#endif
}

inline void lay_out_threads(const dim3& block) {
  Worker& w = *worker;
  const unsigned count = block.x * block.y * block.z;
  if (count == w.thread_count && std::memcmp(&block, &blockDim, sizeof block) == 0) return;
  blockDim = block;
  w.thread_count = count;
  w.warp_count = (count + kLanes - 1) / kLanes;
  for (unsigned i = 0; i < count; i++) {
    Thread& t = w.threads[i];
    t.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
    t.warp = &w.warps[i / kLanes];
    t.lane = static_cast<int>(i % kLanes);
    t.waits_for = nullptr;
  }
}

inline void provide_shared(size_t bytes) {
  Worker& w = *worker;
#if defined(__SANITIZE_ADDRESS__)
  w.shared_capacity = 0;  // exactly the bytes asked for, between red zones
#endif
  if (bytes > w.shared_capacity) {
    std::free(w.shared);
    void* memory = nullptr;
    if (posix_memalign(&memory, 128, bytes)) fail("out of memory for dynamic shared memory");
    w.shared = static_cast<unsigned char*>(memory);
    w.shared_capacity = bytes;
  }
  dynamic_shared = w.shared;
}

/// Runs the launch's blocks [first, last), in order, on this OS thread.
inline void run_blocks(Launch& launch, uint64_t first, uint64_t last) {
  if (!worker) make_worker();
  worker->launch = &launch;
  gridDim = launch.grid;
  lay_out_threads(launch.block);
  provide_shared(launch.shared_bytes);
  const uint64_t columns = launch.grid.x, rows = launch.grid.y;
  for (uint64_t b = first; b < last; b++) {
    if (launch.shared_bytes) std::memset(worker->shared, 0xff, launch.shared_bytes);  // NaN, not the last block's data
    blockIdx = {static_cast<unsigned>(b % columns), static_cast<unsigned>(b / columns % rows),
                static_cast<unsigned>(b / (columns * rows))};
    run_block();
  }
}

}  // namespace host_chip

#define threadIdx (::host_chip::current->index)
