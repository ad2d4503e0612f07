// What the kernel checks and benches share: error checks, device arrays, random stored blocks, timing of captured
// graphs.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/device.cuh"
#include "base/launch.cuh"
#include "lane/formats.h"

namespace bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}
#define BENCH_CHECK(x) ::bench::check((x), #x)

/// A device array, freed with its owner.
template <class T>
class Array {
 public:
  explicit Array(size_t n, bool poisoned = true) : size_(n) {
    void* p;
    BENCH_CHECK(cudaMalloc(&p, std::max<size_t>(n, 1) * sizeof(T)));
    data_.reset(static_cast<T*>(p));
    if (poisoned) BENCH_CHECK(cudaMemset(p, 0xFF, n * sizeof(T)));  // NaN in every float
  }
  explicit Array(const std::vector<T>& v) : Array(v.size(), false) {
    BENCH_CHECK(cudaMemcpy(data(), v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::vector<T> read() const {
    std::vector<T> v(size_);
    BENCH_CHECK(cudaMemcpy(v.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }
  void poison() { BENCH_CHECK(cudaMemset(data(), 0xFF, size_ * sizeof(T))); }

 private:
  struct Free {
    void operator()(T* p) const { cudaFree(p); }
  };
  std::unique_ptr<T, Free> data_;
  size_t size_;
};

/// Where a format's blocks hold f16 scales, and sizes for them that keep weights near the ones of real models.
struct ScaleField {
  lane::FormatId format;
  int offset;
  float size;
};
inline constexpr ScaleField kScaleFields[] = {
    {lane::FormatId::Q4_0, 0, 1e-3f},   {lane::FormatId::Q4_1, 0, 1e-3f},  {lane::FormatId::Q4_1, 2, -8e-3f},
    {lane::FormatId::Q5_0, 0, 1e-3f},   {lane::FormatId::Q5_1, 0, 1e-3f},  {lane::FormatId::Q5_1, 2, -1.6e-2f},
    {lane::FormatId::Q8_0, 0, 2e-4f},   {lane::FormatId::Q2_K, 80, 1e-3f}, {lane::FormatId::Q2_K, 82, 1.5e-3f},
    {lane::FormatId::Q3_K, 108, 1e-4f}, {lane::FormatId::Q4_K, 0, 1e-4f},  {lane::FormatId::Q4_K, 2, 7e-4f},
    {lane::FormatId::Q5_K, 0, 5e-5f},   {lane::FormatId::Q5_K, 2, 7e-4f},  {lane::FormatId::Q6_K, 208, 1e-5f},
    {lane::FormatId::IQ4_NL, 0, 1e-4f}, {lane::FormatId::IQ4_XS, 0, 1e-5f}};

/// Every other bit is random.
inline std::vector<uint8_t> random_blocks(const lane::Format& format, size_t elements, std::mt19937& random) {
  std::vector<uint8_t> bytes(format.row_bytes(elements));
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> factor(0.5f, 2.f);
  auto put = [&](size_t at, uint16_t bits) { memcpy(&bytes[at], &bits, 2); };
  const auto id = static_cast<lane::FormatId>(format.id);
  if (id == lane::FormatId::F16 || id == lane::FormatId::BF16) {
    for (size_t i = 0; i < bytes.size(); i += 2) {
      const float v = 0.02f * normal(random);
      put(i, id == lane::FormatId::F16 ? __half_as_ushort(__float2half(v)) : __bfloat16_as_ushort(__float2bfloat16(v)));
    }
    return bytes;
  }
  for (auto& b : bytes) b = static_cast<uint8_t>(random());
  for (size_t block = 0; block < bytes.size(); block += static_cast<size_t>(format.block_bytes)) {
    for (const ScaleField& field : kScaleFields)
      if (field.format == id)
        put(block + static_cast<size_t>(field.offset), __half_as_ushort(__float2half(field.size * factor(random))));
    if (id == lane::FormatId::MXFP4) bytes[block] = static_cast<uint8_t>(118 + random() % 6);
  }
  return bytes;
}

/// The same kind of noise, made on the device: for timing. One thread a block.
__global__ void fill_with_noise(uint8_t* out, int64_t blocks, int block_bytes, int offset0, float size0, int offset1,
                                float size1, uint32_t seed) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < blocks;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    uint32_t h = (static_cast<uint32_t>(i) + seed) * 2654435761u;
    for (int b = 0; b < block_bytes; b++) {
      h ^= h >> 15, h *= 0x2c1b3c6d, h ^= h >> 12, h += 0x9e3779b9;
      out[i * block_bytes + b] = static_cast<uint8_t>(h >> 16);
    }
    auto put = [&](int offset, float v) {
      const uint16_t bits = __half_as_ushort(__float2half(v));
      out[i * block_bytes + offset] = static_cast<uint8_t>(bits),
                            out[i * block_bytes + offset + 1] = static_cast<uint8_t>(bits >> 8);
    };
    const float jitter = 1.f + static_cast<float>(h >> 24) * (1.f / 256);
    if (offset0 >= 0) put(offset0, size0 * jitter);
    if (offset1 >= 0) put(offset1, size1 * jitter);
    if (block_bytes == 2) out[i * 2 + 1] = static_cast<uint8_t>((out[i * 2 + 1] & 0x80) | 0x3C);  // BF16 near 0.01
  }
}
inline void fill_with_noise(const lane::Format& format, uint8_t* out, size_t elements, uint32_t seed,
                            cudaStream_t stream) {
  int offset[2] = {-1, -1};
  float size[2] = {0, 0};
  int n = 0;
  for (const ScaleField& field : kScaleFields)
    if (static_cast<int32_t>(field.format) == format.id) offset[n] = field.offset, size[n++] = field.size;
  const auto blocks = static_cast<int64_t>(elements) / format.block_elements;
  fill_with_noise<<<1024, 256, 0, stream>>>(out, blocks, format.block_bytes, offset[0], size[0], offset[1], size[1],
                                            seed);
  BENCH_CHECK(cudaGetLastError());
}

template <class Kernel>
void prepare(Kernel kernel, int shared_limit) {
  cudaFuncAttributes a;
  BENCH_CHECK(cudaFuncGetAttributes(&a, kernel));
  BENCH_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_limit - static_cast<int>(a.sharedSizeBytes)));
}

struct Timing {
  float median_us, spread_us;  // spread: from the 10th to the 90th percentile
};
/// `enqueue` is captured once and replayed: three times to warm up, then `repeats` times.
inline Timing time_graph(cudaStream_t stream, int repeats, const std::function<void()>& enqueue) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  BENCH_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  enqueue();
  BENCH_CHECK(cudaStreamEndCapture(stream, &graph));
  BENCH_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin, end;
  BENCH_CHECK(cudaEventCreate(&begin));
  BENCH_CHECK(cudaEventCreate(&end));
  std::vector<float> us;
  for (int i = -3; i < repeats; i++) {
    BENCH_CHECK(cudaEventRecord(begin, stream));
    BENCH_CHECK(cudaGraphLaunch(executable, stream));
    BENCH_CHECK(cudaEventRecord(end, stream));
    BENCH_CHECK(cudaEventSynchronize(end));
    float ms;
    BENCH_CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 0) us.push_back(ms * 1e3f);
  }
  std::sort(us.begin(), us.end());
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph), cudaEventDestroy(begin), cudaEventDestroy(end);
  return {us[us.size() / 2], us[us.size() * 9 / 10] - us[us.size() / 10]};
}

}  // namespace bench
