// What an attention cache is made of. A cache's row is `columns` values of one position, all heads side by side. A
// sequence's state lies at state + slots[sequence] * state_stride bytes.
#pragma once
#include "base/launch.cuh"
#include "ops/position.cuh"

namespace LANE_NAMESPACE {

struct F32Cache {
  static constexpr int kElements = 1, kBytes = 4;
  static __host__ __device__ float load(const uint8_t* row, int i) { return reinterpret_cast<const float*>(row)[i]; }
  static __host__ __device__ void store(uint8_t* row, int i, const float* x) {
    reinterpret_cast<float*>(row)[i] = x[0];
  }
};

struct F16Cache {
  static constexpr int kElements = 1, kBytes = 2;
  static __host__ __device__ float load(const uint8_t* row, int i) {
    return __half2float(reinterpret_cast<const __half*>(row)[i]);
  }
  static __host__ __device__ void store(uint8_t* row, int i, const float* x) {
    reinterpret_cast<__half*>(row)[i] = __float2half(x[0]);
  }
};

/// Blocks of 32 values as GGUF's Q8_0: a half scale, then 32 signed bytes.
struct Q8Cache {
  static constexpr int kElements = 32, kBytes = 34;
  static __host__ __device__ float load(const uint8_t* row, int i) {
    const uint8_t* block = row + i / kElements * kBytes;
    const float scale = __half2float(*reinterpret_cast<const __half*>(block));
    return scale * float(int8_t(block[2 + i % kElements]));
  }
  static __host__ __device__ void store(uint8_t* row, int i, const float* x) {
    float most = 0;
    for (int e = 0; e < kElements; e++) most = fmaxf(most, fabsf(x[e]));
    const float scale = most / 127.0f, inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    uint8_t* block = row + i / kElements * kBytes;
    *reinterpret_cast<__half*>(block) = __float2half(scale);
    for (int e = 0; e < kElements; e++) block[2 + e] = uint8_t(int8_t(rintf(x[e] * inverse)));
  }
};

/// Writes each token's row of x into the cache, at the token's position. Grid: a thread a block of the cache's type;
/// `count` is tokens * columns / Cache::kElements.
template <class Cache>
__global__ void cache_write(uint8_t* state, const float* x, const int* pos, const int* slots, int64_t state_stride,
                            int count, int columns, int rows_per_sequence) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int blocks = columns / Cache::kElements, token = i / blocks, block = i % blocks;
  const int64_t position = position_of(token, pos, rows_per_sequence);
  uint8_t* sequence = state + slots[token / rows_per_sequence] * state_stride;
  uint8_t* row = sequence + position * blocks * Cache::kBytes;
  Cache::store(row, block * Cache::kElements, x + int64_t(token) * columns + block * Cache::kElements);
}

}  // namespace LANE_NAMESPACE
