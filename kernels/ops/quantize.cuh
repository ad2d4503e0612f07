// Activations as integers, 32 values a group: what `--activations int8x2` (two bytes a value, 15 bits and a sign) and
// `int8` (one byte) multiply with. A row of activations is its groups one after the other.
#pragma once
#include "base/launch.cuh"
#include "base/warp.cuh"
#include "quant/group.cuh"

namespace LANE_NAMESPACE {

/// Value i = scale * integer i; the integer is byte i of the only plane, or 256 * byte i of the first + byte i of the
/// second. `sum[h]` is scale times the sum of half h's integers: what a weight format's minima are multiplied with.
template <int PLANES>
struct alignas(16) QuantizedGroup {
  uint32_t plane[PLANES][kGroup / 4];
  float scale;
  float sum[2];
  float unused;
};
/// Bytes of a row: kInt8x2Bytes or kInt8Bytes for each group of 32 columns.
constexpr int kInt8x2Bytes = 80, kInt8Bytes = 48;
static_assert(sizeof(QuantizedGroup<2>) == kInt8x2Bytes && sizeof(QuantizedGroup<1>) == kInt8Bytes, "read as bytes");

/// The greatest integer of a group. 256 * 127 and no more, so that the upper byte of two, rounded, is at most 127.
template <int PLANES>
constexpr float kGreatest = PLANES == 2 ? 32512.0f : 127.0f;

/// A warp quantizes a group, a value a lane. Round to nearest, ties to even; groups whose values are all below 1e-30
/// become zero, since a scale's inverse must be finite.
template <int PLANES>
__device__ __forceinline__ void quantize_group(QuantizedGroup<PLANES>* to, float value) {
  const int lane = lane_index();
  const float greatest = warp_max(fabsf(value));
  const bool zero = greatest < 1e-30f;
  const int integer = zero ? 0 : __float2int_rn(value * (kGreatest<PLANES> / greatest));
  const float scale = zero ? 0.0f : greatest / kGreatest<PLANES>;
  const int sum = half_warp_sum(integer);
  int8_t* bytes = reinterpret_cast<int8_t*>(to->plane[0]);
  if (PLANES == 2) {
    const int upper = (integer + 128) >> 8;
    bytes[lane] = static_cast<int8_t>(upper);
    bytes[kGroup + lane] = static_cast<int8_t>(integer - 256 * upper);
  } else {
    bytes[lane] = static_cast<int8_t>(integer);
  }
  if (lane % 16 == 0) to->sum[lane / 16] = scale * static_cast<float>(sum);
  if (lane == 0) {
    to->scale = scale;
    to->unused = 0.0f;
  }
}

constexpr int kQuantizeThreads = 256;

/// out: `rows` rows of columns / 32 groups of PLANES planes; columns is a multiple of 32. Launch: kQuantizeThreads
/// threads, any number of blocks; a warp takes a group at a time.
template <int PLANES>
__global__ void __launch_bounds__(kQuantizeThreads) quantize(uint8_t* out, const float* x, int rows, int columns) {
  follow_producer();
  const int64_t groups = static_cast<int64_t>(rows) * (columns / kGroup);
  const int warps = static_cast<int>(gridDim.x * (blockDim.x / kWarpLanes));
  auto* to = reinterpret_cast<QuantizedGroup<PLANES>*>(out);
  for (int64_t g = blockIdx.x * (blockDim.x / kWarpLanes) + warp_index(); g < groups; g += warps) {
    quantize_group(to + g, x[g * kGroup + lane_index()]);
  }
}

}  // namespace LANE_NAMESPACE
