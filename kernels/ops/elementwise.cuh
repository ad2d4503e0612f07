// Functions of one or two values, a thread each. All arrays are float32, contiguous.
#pragma once
#include "base/device.cuh"
#include "base/launch.cuh"
#include "base/namespace.h"

namespace LANE_NAMESPACE {

/// 1 / (1 + e^-x); expf overflows to infinity where x is very negative, and the quotient is then the right 0.
__device__ inline float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }

/// ln(1 + e^x) without overflow.
__device__ inline float softplus_of(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

/// The tanh form, as the checkpoints that name GELU were trained with it.
__device__ inline float gelu_of(float x) {
  constexpr float kRootTwoOverPi = 0.79788456080286535588f;
  return 0.5f * x * (1.0f + tanhf(kRootTwoOverPi * x * (1.0f + 0.044715f * x * x)));
}

// Functions of one value and one parameter, which most of them ignore.
struct Scale {
  static __device__ float apply(float x, float factor) { return x * factor; }
};
struct Silu {
  static __device__ float apply(float x, float) { return x * sigmoid_of(x); }
};
struct Gelu {
  static __device__ float apply(float x, float) { return gelu_of(x); }
};
struct Sigmoid {
  static __device__ float apply(float x, float) { return sigmoid_of(x); }
};
struct Softplus {
  static __device__ float apply(float x, float) { return softplus_of(x); }
};
struct SquareRelu {
  static __device__ float apply(float x, float) { return x > 0.0f ? x * x : 0.0f; }
};
struct Softcap {
  static __device__ float apply(float x, float limit) { return limit * tanhf(x / limit); }
};
struct Clamp {
  static __device__ float apply(float x, float limit) { return fminf(fmaxf(x, -limit), limit); }
};

/// out[i] = F(x[i]) for i < count; grid: a thread an element. `out` may be `x`.
template <class F>
__global__ void map(float* out, const float* x, int count, float parameter) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = F::apply(x[i], parameter);
}

struct Add {
  static __device__ float apply(float x, float y) { return x + y; }
};
struct Multiply {
  static __device__ float apply(float x, float y) { return x * y; }
};

/// out[t][c] = F(x[t][c], y[t * y_row + c * y_column]): strides of 0 repeat one row for every token, or one value a
/// row.
template <class F>
__global__ void combine(float* out, const float* x, const float* y, int count, int columns, int y_row, int y_column) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int row = i / columns, column = i % columns;
  out[i] = F::apply(x[i], y[int64_t(row) * y_row + int64_t(column) * y_column]);
}

// Gates: an activation of g, times u.
struct SiluGate {
  static __device__ float apply(float g, float u, float, float) { return g * sigmoid_of(g) * u; }
};
struct GeluGate {
  static __device__ float apply(float g, float u, float, float) { return gelu_of(g) * u; }
};
struct SigmoidGate {
  static __device__ float apply(float g, float u, float, float) { return sigmoid_of(g) * u; }
};
struct ClampedGate {
  static __device__ float apply(float g, float u, float limit, float slope) {
    const float bounded = fminf(g, limit);
    return bounded * sigmoid_of(slope * bounded) * (fminf(fmaxf(u, -limit), limit) + 1.0f);
  }
};

/// out[i] = G(g[i], u[i]); grid: a thread an element.
template <class G>
__global__ void gate(float* out, const float* g, const float* u, int count, float limit, float slope) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = G::apply(g[i], u[i], limit, slope);
}

/// out[t][h] = exp(rate[h] * softplus(a[t][h] + dt[h])): how much of a delta-rule memory a step keeps. `rate` is
/// negative.
__global__ void decay(float* out, const float* a, const float* dt, const float* rate, int count, int heads) {
  follow_producer();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = expf(rate[i % heads] * softplus_of(a[i] + dt[i % heads]));
}

}  // namespace LANE_NAMESPACE
