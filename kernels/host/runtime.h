// The host chip: CUDA's runtime API, the part that lanec's programs call. Streams queue, and run only where something
// synchronises. One OS thread calls it at a time.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "host/pool.h"
#include "host/runtime_memory.h"
#include "host/runtime_types.h"

namespace host_chip {

/// All streams; the first is the default one.
inline std::vector<Stream*>& streams() {
  static Stream default_stream;
  static std::vector<Stream*> all{&default_stream};
  return all;
}
inline Stream* stream_of(cudaStream_t stream) { return stream ? stream : streams().front(); }

inline cudaError_t& last_error() {
  static cudaError_t error = cudaSuccess;
  return error;
}
inline cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

inline cudaError_t enqueue(cudaStream_t to, std::function<void()> work) {
  Stream* stream = stream_of(to);
  (stream->capture ? static_cast<void>(stream->capture->work.push_back(std::move(work)))
                   : static_cast<void>(stream->queue.push_back(std::move(work))));
  return cudaSuccess;
}
/// Runs the stream's work, up to where it has come to record `record` of `until`.
inline void drain(Stream* stream, const Event* until = nullptr, uint64_t record = 0) {
  while (!stream->queue.empty() && !(until && until->reached >= record)) {
    const std::function<void()> work = std::move(stream->queue.front());
    stream->queue.pop_front();
    work();
  }
}
inline cudaError_t drain_all() {
  for (const Stream* stream : streams()) {
    if (stream->capture) return record(cudaErrorStreamCaptureUnsupported);
  }
  for (Stream* stream : streams()) drain(stream);
  return cudaSuccess;
}

/// Most dynamic shared memory of each kernel that asked for more than the usual.
inline std::map<const void*, size_t>& shared_limits() {
  static std::map<const void*, size_t> limits;
  return limits;
}
inline bool launchable(const cudaLaunchConfig_t& config, const void* kernel) {
  const auto limit = shared_limits().find(kernel);
  const dim3 g = config.gridDim, b = config.blockDim;
  const uint64_t threads = uint64_t(b.x) * b.y * b.z;
  return threads >= 1 && threads <= kMaxThreads && b.z <= 64 && g.x >= 1 && g.y >= 1 && g.z >= 1 &&
         g.x <= 0x7fffffffu && g.y <= 65535 && g.z <= 65535 &&
         config.dynamicSmemBytes <= (limit == shared_limits().end() ? kSharedBytes : limit->second);
}

}  // namespace host_chip

// ---- the device

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
  }
  return "unrecognized error code";
}
inline cudaError_t cudaGetLastError() { return std::exchange(host_chip::last_error(), cudaSuccess); }
inline cudaError_t cudaPeekAtLastError() { return host_chip::last_error(); }

inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : host_chip::record(cudaErrorInvalidDevice);
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return host_chip::record(cudaErrorInvalidDevice);
  *properties = cudaDeviceProp{};
  std::snprintf(properties->name, sizeof properties->name, "host chip");
  properties->totalGlobalMem = host_chip::memory().total();
  properties->sharedMemPerBlock = host_chip::kSharedBytes;
  properties->sharedMemPerBlockOptin = host_chip::kSharedBytesOptin;
  properties->multiProcessorCount = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  properties->warpSize = static_cast<int>(host_chip::kLanes);
  properties->maxThreadsPerBlock = static_cast<int>(host_chip::kMaxThreads);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
  }
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return host_chip::drain_all(); }
inline cudaError_t cudaDeviceReset() { return host_chip::drain_all(); }

// ---- memory

inline cudaError_t cudaFree(void* p) {
  host_chip::drain_all();
  return host_chip::record(host_chip::memory().release(p));
}
inline cudaError_t cudaFreeHost(void* p) {
  host_chip::drain_all();
  std::free(p);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream = nullptr) {
  return host_chip::enqueue(stream, [=] {
    if (bytes) std::memcpy(to, from, bytes);
  });
}
inline cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t stream = nullptr) {
  return host_chip::enqueue(stream, [=] {
    if (bytes) std::memset(p, value, bytes);
  });
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  const cudaError_t error = host_chip::drain_all();
  if (error == cudaSuccess && bytes) std::memcpy(to, from, bytes);
  return error;
}
inline cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  const cudaError_t error = host_chip::drain_all();
  if (error == cudaSuccess && bytes) std::memset(p, value, bytes);
  return error;
}

// ---- streams

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new host_chip::Stream;
  host_chip::streams().push_back(*stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  host_chip::Stream* s = host_chip::stream_of(stream);
  if (s->capture) return host_chip::record(cudaErrorStreamCaptureUnsupported);
  host_chip::drain(s);
  return cudaSuccess;
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream) return host_chip::record(cudaErrorInvalidValue);
  host_chip::drain(stream);
  auto& all = host_chip::streams();
  all.erase(std::remove(all.begin() + 1, all.end(), stream), all.end());
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return host_chip::enqueue(stream, [=] { function(data); });
}

// ---- events

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new host_chip::Event;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!event->done()) host_chip::drain(event->stream, event, event->recorded);
  return cudaSuccess;
}
/// Makes progress, since nothing else would: an event that is asked about is done.
inline cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaEventSynchronize(event);
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  host_chip::Stream* s = host_chip::stream_of(stream);
  event->stream = s;
  event->capture = s->capture;
  if (s->capture) return cudaSuccess;
  return host_chip::enqueue(stream, [event, record = ++event->recorded] {
    event->time = std::chrono::steady_clock::now();
    event->reached = record;
  });
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned = 0) {
  if (event->capture) {  // joins the capture; the order of recording is a valid order
    host_chip::stream_of(stream)->capture = event->capture;
    return cudaSuccess;
  }
  return host_chip::enqueue(stream, [event, on = event->stream, record = event->recorded] {
    if (event->reached < record) host_chip::drain(on, event, record);
  });
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (!from->done() || !to->done()) return host_chip::record(cudaErrorInvalidValue);
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return cudaSuccess;
}

// ---- graphs

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || stream->capture) return host_chip::record(cudaErrorStreamCaptureUnsupported);
  stream->capture = new host_chip::Graph;
  stream->began_capture = true;
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream || !stream->began_capture) return host_chip::record(cudaErrorInvalidValue);
  *graph = stream->capture;
  for (host_chip::Stream* other : host_chip::streams()) {
    if (other->capture != *graph) continue;
    other->capture = nullptr;
    other->began_capture = false;
  }
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long = 0) {
  *executable = new host_chip::Graph(*graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return host_chip::enqueue(stream, [executable] {
    for (const std::function<void()>& work : executable->work) work();
  });
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  host_chip::drain_all();
  delete executable;
  return cudaSuccess;
}

// ---- kernels

template <class... Parameters>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || size_t(value) > host_chip::kSharedBytesOptin) return host_chip::record(cudaErrorInvalidValue);
  host_chip::shared_limits()[reinterpret_cast<const void*>(kernel)] = static_cast<size_t>(value);
  return cudaSuccess;
}

/// Launch attributes say how launches may overlap; here they never do.
template <class... Parameters, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                                      Arguments&&... arguments) {
  if (!host_chip::launchable(*config, reinterpret_cast<const void*>(kernel))) {
    return host_chip::record(cudaErrorInvalidConfiguration);
  }
  using Bound = std::pair<void (*)(Parameters...), std::tuple<std::decay_t<Parameters>...>>;
  const dim3 grid = config->gridDim, block = config->blockDim;
  return host_chip::enqueue(
      config->stream,
      [grid, block, shared = config->dynamicSmemBytes,
       bound = Bound(kernel, std::tuple<std::decay_t<Parameters>...>(std::forward<Arguments>(arguments)...))] {
        const auto call = [](const void* p) {
          std::apply(static_cast<const Bound*>(p)->first, static_cast<const Bound*>(p)->second);
        };
        host_chip::Launch launch{call, &bound, grid, block, shared};
        host_chip::pool().run(launch);
      });
}
