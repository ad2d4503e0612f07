// Products with quantized activations (ops/quantize.cuh): the weights' own integers times the activations', in integer
// dot products. Q is a weight format of integers; for the others ops/matrix_product.cuh alone. `x` is a row of
// quantized groups where matrix_product has a row of floats; everything else is as there, the launch too.
//
// A group's integer sum is exact; scales and the sum over groups are float, every multiplication with an addition one
// explicit fmaf. So the bits are the same on every chip.
#pragma once
#include "base/dot.cuh"
#include "base/launch.cuh"
#include "ops/product_rows.cuh"
#include "ops/quantize.cuh"

namespace LANE_NAMESPACE {

/// What a group of activations gives to the sums beside its integers.
struct ActivationSums {
  float scale, sum[2];
};
template <int PLANES>
__device__ __forceinline__ ActivationSums activation_sums(const QuantizedGroup<PLANES>& x) {
  const float4 all = *reinterpret_cast<const float4*>(&x.scale);
  return {all.x, {all.y, all.z}};
}

/// sum + the share of part s of a group: scale * x's scale * integers - minimum * x's sum.
template <class Q>
__device__ __forceinline__ float add_share(float sum, float scale, float minimum, int integers, const ActivationSums& x,
                                           int s) {
  sum = fmaf(scale * x.scale, static_cast<float>(integers), sum);
  return Q::kHasMinimum ? fmaf(-minimum, Q::kScales == 2 ? x.sum[s] : x.sum[0] + x.sum[1], sum) : sum;
}

template <class Q, int PLANES>
struct QuantizedActivations {
  static_assert(Q::kElements >= kGroup, "weights that are floats take float activations");
  using Sum = float;
  const QuantizedGroup<PLANES>* groups;  // rows of columns / 32
  int columns;

  __device__ __forceinline__ QuantizedActivations(const uint8_t* x, int columns_)
      : groups(reinterpret_cast<const QuantizedGroup<PLANES>*>(x)), columns(columns_) {}

  struct Group {
    uint32_t words[8];
    float scale[Q::kScales], minimum[Q::kScales];
  };
  __device__ __forceinline__ void load(Group& g, const uint8_t* row, int group) const {
    Q::unpack(row, group, g.words);
    Q::scales(row, group, g.scale, g.minimum);
    keep_whole(g.words);
  }

  /// sum + the group's share: of each part with a scale of its own.
  __device__ __forceinline__ Sum add(Sum sum, const Group& g, int64_t x_row, int group) const {
    const QuantizedGroup<PLANES>& x = groups[x_row * (columns / kGroup) + group];
    const ActivationSums sums = activation_sums(x);
    constexpr int kWords = 8 / Q::kScales;
    LANE_UNROLL
    for (int s = 0; s < Q::kScales; s++) {
      int integers = 0;
      LANE_UNROLL
      for (int p = 0; p < PLANES; p++) {
        integers = 256 * integers + dot_bytes<kWords>(g.words + s * kWords, x.plane[p] + s * kWords);
      }
      sum = add_share<Q>(sum, g.scale[s], g.minimum[s], integers, sums, s);
    }
    return sum;
  }
};

template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    matrix_product_int8x2(float* out, const uint8_t* w, const uint8_t* x, int rows, int columns, int tokens) {
  follow_producer();
  matrix_rows<Q>(out, w, QuantizedActivations<Q, 2>(x, columns), rows, tokens);
}
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    matrix_product_int8(float* out, const uint8_t* w, const uint8_t* x, int rows, int columns, int tokens) {
  follow_producer();
  matrix_rows<Q>(out, w, QuantizedActivations<Q, 1>(x, columns), rows, tokens);
}

template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    head_product_int8x2(float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns, int tokens) {
  follow_producer();
  head_rows<Q>(out, w, QuantizedActivations<Q, 2>(x, columns), heads, rows, tokens);
}
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    head_product_int8(float* out, const uint8_t* w, const uint8_t* x, int heads, int rows, int columns, int tokens) {
  follow_producer();
  head_rows<Q>(out, w, QuantizedActivations<Q, 1>(x, columns), heads, rows, tokens);
}

template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    expert_product_int8x2(float* out, const uint8_t* w, const uint8_t* x, const int* chosen, int count, int rows,
                          int columns, int x_rows) {
  follow_producer();
  expert_rows<Q>(out, w, QuantizedActivations<Q, 2>(x, columns), chosen, count, rows, x_rows);
}
template <class Q>
__global__ void __launch_bounds__(kProductThreads)
    expert_product_int8(float* out, const uint8_t* w, const uint8_t* x, const int* chosen, int count, int rows,
                        int columns, int x_rows) {
  follow_producer();
  expert_rows<Q>(out, w, QuantizedActivations<Q, 1>(x, columns), chosen, count, rows, x_rows);
}

}  // namespace LANE_NAMESPACE
