#include "thread_pool.h"

#include <algorithm>

namespace lane::reference {

ThreadPool::ThreadPool(int threads) {
  const int64_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  for (int64_t i = 1; i < wanted; ++i) threads_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::for_each_piece(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  if (threads_.empty() || count < 2) {
    body(0, count);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_piece_ = 0;
    running_ = int64_t(threads_.size());
    ++loop_;
  }
  start_.notify_all();
  run_pieces();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

/// Several pieces a thread, taken as each is ready for more: a core that others use holds nobody up.
void ThreadPool::run_pieces() {
  const int64_t pieces = std::min(count_, (int64_t(threads_.size()) + 1) * 4);
  for (int64_t i = next_piece_++; i < pieces; i = next_piece_++)
    (*body_)(count_ * i / pieces, count_ * (i + 1) / pieces);
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stop_ || loop_ != seen; });
    if (stop_) return;
    seen = loop_;
    lock.unlock();
    run_pieces();
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace lane::reference
