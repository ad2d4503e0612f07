// Loops over all cores. Private to this library.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lane::reference {

/// Threads that share one loop at a time. A loop's pieces are independent, so no result depends on their number.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // 0: one a core; the caller's own counts
  ~ThreadPool();

  /// Calls `body(begin, end)` for pieces that cover 0 … count, and returns when all are done. `body` does not throw.
  void for_each_piece(int64_t count, const std::function<void(int64_t, int64_t)>& body);

 private:
  void work();
  void run_pieces();

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int64_t, int64_t)>* body_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_piece_ = 0;
  uint64_t loop_ = 0;  // how many loops have begun
  int64_t running_ = 0;
  bool stop_ = false;
};

}  // namespace lane::reference
