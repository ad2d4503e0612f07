// The host chip: OS threads that share the blocks of a launch.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "host/block.h"

namespace host_chip {

/// The caller's thread works too. Blocks are handed out in runs, in the order of their indices; which thread runs which
/// is not determined, so kernels whose blocks depend on each other's order show as races under TSan.
class Pool {
 public:
  Pool() {
#ifndef HOST_CHIP_ONE_WORKER
    const long cores = std::max(1u, std::thread::hardware_concurrency());
    const long threads = setting("HOST_CHIP_THREADS", std::min(cores, 16L));
    for (long i = 1; i < threads; i++) helpers_.emplace_back([this] { help(); });
#endif
  }
  ~Pool() {
    stop_ = true;
    wake();
    for (std::thread& helper : helpers_) helper.join();
  }

  /// Returns when every block has run.
  void run(Launch& launch) {
    const uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
    const uint64_t threads = uint64_t(launch.block.x) * launch.block.y * launch.block.z;
    if (helpers_.empty() || blocks == 1 || blocks * threads <= kSmall) return run_blocks(launch, 0, blocks);
    while (inside_.load(std::memory_order_acquire) != kClosed) pause();  // late helpers of the launch before
    launch_ = &launch;
    total_ = blocks;
    run_length_ = std::max<uint64_t>(1, blocks / ((helpers_.size() + 1) * 8));
    next_ = 0;
    inside_.fetch_and(~kClosed);
    wake();
    work();
    inside_.fetch_or(kClosed);
    for (unsigned i = 1; inside_.load(std::memory_order_acquire) != kClosed; i++) {
      if (i % 1024)
        pause();
      else
        std::this_thread::yield();
    }
  }

 private:
  static constexpr unsigned kClosed = 1u << 31;  // beside the number of helpers inside: no further one may enter
  static constexpr uint64_t kSmall = 512;        // a launch of so few threads is not worth sharing
  static constexpr int kSpins = 3000;            // launches come close together: spin, then sleep

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void wake() {
    epoch_++;
    if (asleep_.load() == 0) return;
    { std::lock_guard<std::mutex> lock(mutex_); }
    sleepers_.notify_all();
  }

  void work() {
    for (;;) {
      const uint64_t first = next_.fetch_add(run_length_);
      if (first >= total_) return;
      run_blocks(*launch_, first, std::min(first + run_length_, total_));
    }
  }

  void await_epoch_after(unsigned seen) {
    for (int i = 0; i < kSpins && epoch_.load(std::memory_order_acquire) == seen; i++) pause();
    if (epoch_.load() != seen) return;
    std::unique_lock<std::mutex> lock(mutex_);
    asleep_++;
    sleepers_.wait(lock, [&] { return epoch_.load() != seen; });
    asleep_--;
  }

  void help() {
    for (unsigned seen = 0;;) {
      await_epoch_after(seen);
      seen = epoch_.load();
      if (stop_) return;
      if (!(inside_.fetch_add(1) & kClosed)) work();
      inside_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  std::condition_variable sleepers_;
  Launch* launch_ = nullptr;
  uint64_t total_ = 0, run_length_ = 1;
  std::atomic<uint64_t> next_{0};
  std::atomic<unsigned> epoch_{0}, inside_{kClosed}, asleep_{0};
  std::atomic<bool> stop_{false};
};

inline Pool& pool() {
  static Pool the_pool;
  return the_pool;
}

}  // namespace host_chip
