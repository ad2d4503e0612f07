// What a program holds on the device, released in its destructors, and CUDA's errors as a Status.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.cuh"
#include "runtime/status.h"

namespace LANE_NAMESPACE {

inline Status cuda_status(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return {};
  return {kExitEnvironment, std::string("Cuda: ") + doing + ": " + cudaGetErrorString(error)};
}

/// Lets a kernel ask for so much dynamic shared memory, and has it want as much of a multiprocessor's memory shared as
/// any other kernel: dividing that memory anew takes an idle multiprocessor, and launches would not overlap.
template <class... Parameters>
cudaError_t share_memory(void (*kernel)(Parameters...), int dynamic_bytes) {
  constexpr int kAllShared = 100;  // per cent
  LANE_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, kAllShared));
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_bytes);
}

/// Whether this program has code for the GPU at hand.
template <class... Parameters>
cudaError_t has_code(void (*kernel)(Parameters...)) {
#if defined(__CUDACC__)
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
#else
  (void)kernel;
  return cudaSuccess;
#endif
}

/// Memory of the device, or pinned memory of the host.
template <cudaError_t (*Allocate)(void**, size_t), cudaError_t (*Release)(void*)>
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Block() { release(); }

  /// At least one byte, so that data() is never null after success.
  cudaError_t allocate(size_t bytes) {
    release();
    return Allocate(&data_, bytes ? bytes : 1);
  }
  void release() {
    if (data_) (void)Release(std::exchange(data_, nullptr));
  }
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }

 private:
  void* data_ = nullptr;
};

inline cudaError_t allocate_device(void** p, size_t bytes) { return cudaMalloc(p, bytes); }
inline cudaError_t release_device(void* p) { return cudaFree(p); }
inline cudaError_t allocate_pinned(void** p, size_t bytes) { return cudaMallocHost(p, bytes); }
inline cudaError_t release_pinned(void* p) { return cudaFreeHost(p); }
using DeviceBlock = Block<allocate_device, release_device>;
using PinnedBlock = Block<allocate_pinned, release_pinned>;

class Event {
 public:
  Event() = default;
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_) (void)cudaEventDestroy(event_);
  }
  cudaError_t create() { return cudaEventCreateWithFlags(&event_, cudaEventDisableTiming); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream() = default;
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  ~Stream() {
    if (stream_) (void)cudaStreamDestroy(stream_);
  }
  cudaError_t create() { return cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace LANE_NAMESPACE
