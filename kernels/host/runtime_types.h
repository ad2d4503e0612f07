// The host chip: types and names of CUDA's runtime API.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "host/types.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorStreamCaptureUnsupported = 900,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventDisableTiming = 2,
  cudaHostAllocDefault = 0,
  cudaHostAllocMapped = 2,
  cudaHostRegisterDefault = 0,
  cudaHostRegisterReadOnly = 8
};

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin;
  int major, minor, multiProcessorCount, l2CacheSize, warpSize, maxThreadsPerBlock;
};

namespace host_chip {

/// What was captured, in the order of recording: a valid order of the graph.
struct Graph {
  std::vector<std::function<void()>> work;
};
/// Work waits here until something synchronises, so that a forgotten synchronisation shows as stale data.
struct Stream {
  std::deque<std::function<void()>> queue;
  Graph* capture = nullptr;
  bool began_capture = false;
};
/// Who waits for an event waits for its latest record at that time: later ones do not move it.
struct Event {
  Stream* stream = nullptr;
  Graph* capture = nullptr;
  uint64_t recorded = 0, reached = 0;  // records so far, and the last of them that its stream has come to
  bool done() const { return reached == recorded; }
  std::chrono::steady_clock::time_point time;
};

}  // namespace host_chip

using cudaStream_t = host_chip::Stream*;
using cudaEvent_t = host_chip::Event*;
using cudaGraph_t = host_chip::Graph*;
using cudaGraphExec_t = host_chip::Graph*;
using cudaHostFn_t = void (*)(void*);

struct cudaLaunchAttributeValue {
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
