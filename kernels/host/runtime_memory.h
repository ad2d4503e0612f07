// The host chip: memory, counted, so that programs can be tried with as little of it as a test wants. The count is one
// for all OS threads.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "host/runtime_types.h"

namespace host_chip {

constexpr size_t kSharedBytes = 48 << 10, kSharedBytesOptin = 227 << 10;

/// Device memory: HOST_CHIP_MEMORY_BYTES, or what set_memory_bytes said, or the machine's.
class Memory {
 public:
  cudaError_t allocate(void** p, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    *p = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > total_ || used_ > total_ - bytes || posix_memalign(p, 256, bytes)) return cudaErrorMemoryAllocation;
    sizes_[*p] = bytes;
    used_ += bytes;
    return cudaSuccess;
  }
  cudaError_t release(void* p) {
    if (!p) return cudaSuccess;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(p);
    if (found == sizes_.end()) return cudaErrorInvalidValue;
    used_ -= found->second;
    sizes_.erase(found);
    std::free(p);
    return cudaSuccess;
  }
  void set_total(size_t bytes) { total_ = bytes; }
  size_t total() const { return total_; }
  size_t free_bytes() const { return total_ > used_ ? total_ - used_ : 0; }

 private:
  static size_t from_environment() {
    const char* text = std::getenv("HOST_CHIP_MEMORY_BYTES");
    if (text) return std::strtoull(text, nullptr, 10);
    return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  size_t used_ = 0, total_ = from_environment();
};

inline Memory& memory() {
  static Memory the_memory;
  return the_memory;
}
inline void set_memory_bytes(size_t bytes) { memory().set_total(bytes); }

}  // namespace host_chip

inline cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *free_bytes = host_chip::memory().free_bytes();
  *total = host_chip::memory().total();
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** p, size_t bytes) { return host_chip::memory().allocate(p, bytes); }
template <class T>
inline cudaError_t cudaMalloc(T** p, size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  *p = static_cast<T*>(memory);
  return error;
}
// Pinned memory is the host's: not counted.
inline cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  *p = nullptr;
  return bytes && posix_memalign(p, 256, bytes) ? cudaErrorMemoryAllocation : cudaSuccess;
}
template <class T>
inline cudaError_t cudaHostAlloc(T** p, size_t bytes, unsigned flags) {
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, flags);
  *p = static_cast<T*>(memory);
  return error;
}
template <class T>
inline cudaError_t cudaMallocHost(T** p, size_t bytes) {
  return cudaHostAlloc(p, bytes, cudaHostAllocDefault);
}
inline cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
