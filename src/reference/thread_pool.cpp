#include "thread_pool.h"

#include <algorithm>

namespace lane::reference {

ThreadPool::ThreadPool(int threads) {
  const int64_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  for (int64_t i = 1; i < wanted; ++i) threads_.emplace_back([this, i] { work(i); });
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
    running_ = int64_t(threads_.size());
    ++loop_;
  }
  start_.notify_all();
  run_piece(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

void ThreadPool::run_piece(int64_t index) {
  const int64_t pieces = int64_t(threads_.size()) + 1;
  const int64_t begin = count_ * index / pieces, end = count_ * (index + 1) / pieces;
  if (begin < end) (*body_)(begin, end);
}

void ThreadPool::work(int64_t index) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stop_ || loop_ != seen; });
    if (stop_) return;
    seen = loop_;
    lock.unlock();
    run_piece(index);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace lane::reference
