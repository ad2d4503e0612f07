// The host chip: barriers, shuffles and votes, and the reductions that base/warp.cuh builds on.
#pragma once
#include <limits>
#include <type_traits>

#include "host/block.h"

namespace host_chip {

template <class T>
inline uint64_t to_bits(T v) {
  static_assert(sizeof(T) <= 8, "a lane's value has at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T>
HOST_CHIP_INTERNAL inline T from_bits(const uint64_t* slots, int lane) {
  T v;
  std::memcpy(&v, slots + lane, sizeof v);
  return v;
}

/// All live lanes meet and each puts in a value; afterwards slots[lane] holds each one's, or what `combine` made of
/// them. `line` tells collectives apart: lanes that meet in different ones have diverged.
HOST_CHIP_INLINE uint64_t* meet(unsigned mask, uint64_t value, Combine combine, int line, bool needs_all_lanes = true) {
  Thread* t = current;
  Warp& warp = *t->warp;
  uint64_t* slots = warp.slots[warp.barrier.generation & 1];
  if (!warp.barrier.arrived) {
    warp.combine = combine;
    warp.barrier.line = line;
    warp.needs_all_lanes = needs_all_lanes;
  } else if (warp.combine != combine || warp.barrier.line != line) {
    fail("lanes of one warp meet in different collectives");
  }
  if (warp.live & ~mask) fail("a warp collective whose mask leaves out live lanes (use 0xffffffff)");
  slots[t->lane] = value;
  if (++warp.barrier.arrived == warp.live_count)
    finish_collective(warp);
  else
    wait_at(warp.barrier);
  return slots;
}

HOST_CHIP_INLINE void sync_block(int line) {
  Barrier& barrier = worker->barrier;
  char* const order = &barrier.order[barrier.generation & 1];
  HOST_CHIP_RELEASE(order);
  if (!barrier.arrived)
    barrier.line = line;
  else if (barrier.line != line)
    fail("threads of one block meet in different __syncthreads");
  if (++barrier.arrived == worker->live)
    open(barrier);
  else
    wait_at(barrier);
  HOST_CHIP_ACQUIRE(order);
}

HOST_CHIP_INLINE void sync_warp(unsigned mask, int line) {
  Barrier& barrier = current->warp->barrier;
  char* const order = &barrier.order[barrier.generation & 1];
  HOST_CHIP_RELEASE(order);
  meet(mask, 0, nullptr, line, false);
  HOST_CHIP_ACQUIRE(order);
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Greater {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// The tree of the device's butterfly of shuffles over WIDTH lanes: lane i takes lane i + WIDTH / 2, then half of that,
/// …; the same bits, since both operations commute.
template <class T, class Operation, unsigned WIDTH = kLanes>
HOST_CHIP_INTERNAL inline T reduce(const uint64_t* slots) {
  T v[WIDTH];
  for (unsigned i = 0; i < WIDTH; i++) v[i] = from_bits<T>(slots, static_cast<int>(i));
  for (unsigned half = WIDTH / 2; half; half /= 2) {
    for (unsigned i = 0; i < half; i++) v[i] = Operation()(v[i], v[i + half]);
  }
  return v[0];
}

template <class T, class Operation, unsigned WIDTH>
HOST_CHIP_INTERNAL inline void combine_all(Warp&, uint64_t* slots) {
  for (unsigned first = 0; first < kLanes; first += WIDTH) {
    const uint64_t result = to_bits(reduce<T, Operation, WIDTH>(slots + first));
    for (unsigned i = 0; i < WIDTH; i++) slots[first + i] = result;
  }
}

/// Every lane gets the reduction of its WIDTH neighbours, or of all lanes.
template <class T, class Operation, unsigned WIDTH = kLanes>
HOST_CHIP_INLINE T reduce_warp(T v, int line) {
  const int lane = current->lane;
  return from_bits<T>(meet(~0u, to_bits(v), combine_all<T, Operation, WIDTH>, line), lane);
}

/// Only the leader gets the sum, the others NaN: they deposit their value and go on, so that nobody need block.
template <class T>
HOST_CHIP_INTERNAL inline T sum_to_leader(T v) {
  Thread* t = current;
  Warp& warp = *t->warp;
  if (worker->thread_count % kLanes) fail("warp_sum_to_leader needs whole warps");
  const unsigned number = t->sums_given++, at = number % kPending;
  const bool leads = t->lane == kLeader;
  while (!leads && number - warp.sums_taken >= kPending) wait_at(warp.deposits);
  warp.deposit[at][t->lane] = to_bits(v);
  if (!leads) {
    if (++warp.deposited[at] == kLanes - 1 && warp.deposits.arrived) open(warp.deposits);
    return std::numeric_limits<T>::quiet_NaN();
  }
  while (warp.deposited[at] != kLanes - 1) {
    warp.deposits.arrived = 1;
    wait_at(warp.deposits);
  }
  const T sum = reduce<T, Add>(warp.deposit[at]);
  warp.deposited[at] = 0;
  warp.sums_taken++;
  open(warp.deposits);
  return sum;
}

HOST_CHIP_INTERNAL inline void combine_votes(Warp& warp, uint64_t* slots) {
  uint64_t votes = 0;
  for (unsigned i = 0; i < kLanes; i++) {
    if ((warp.live >> i & 1) && slots[i]) votes |= uint64_t(1) << i;
  }
  for (unsigned i = 0; i < kLanes; i++) slots[i] = votes;
}

/// The value of `source`, or one's own where that lies outside the group of `width` lanes.
template <class T>
HOST_CHIP_INLINE T shuffle(unsigned mask, T v, int source, int width, int line) {
  const int lane = current->lane, group = lane & ~(width - 1);
  const uint64_t* slots = meet(mask, to_bits(v), nullptr, line);
  return from_bits<T>(slots, source >= group && source < group + width ? source : lane);
}

}  // namespace host_chip

HOST_CHIP_INLINE void __syncthreads(int line = __builtin_LINE()) { host_chip::sync_block(line); }
HOST_CHIP_INLINE void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) { host_chip::sync_warp(mask, line); }

template <class T>
HOST_CHIP_INLINE T __shfl_sync(unsigned mask, T v, int source, int width = 32, int line = __builtin_LINE()) {
  const int group = host_chip::current->lane & ~(width - 1);
  return host_chip::shuffle(mask, v, group + (source & (width - 1)), width, line);
}
template <class T>
HOST_CHIP_INLINE T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, int line = __builtin_LINE()) {
  return host_chip::shuffle(mask, v, host_chip::current->lane ^ bits, width, line);
}
template <class T>
HOST_CHIP_INLINE T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return host_chip::shuffle(mask, v, host_chip::current->lane + static_cast<int>(by), width, line);
}
template <class T>
HOST_CHIP_INLINE T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return host_chip::shuffle(mask, v, host_chip::current->lane - static_cast<int>(by), width, line);
}
HOST_CHIP_INLINE unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  const int lane = host_chip::current->lane;
  const uint64_t* slots = host_chip::meet(mask, predicate != 0, host_chip::combine_votes, line, false);
  return static_cast<unsigned>(host_chip::from_bits<uint64_t>(slots, lane));
}
HOST_CHIP_INLINE int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) != 0;
}
HOST_CHIP_INLINE int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, !predicate, line) == 0;
}
