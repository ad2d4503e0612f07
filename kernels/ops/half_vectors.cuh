// The vectors of a chunk's tokens as halves, made once for all products that read them (ops/chunk_product.cuh):
//
//   half_vectors<Columns, Words>(out, x, norm, epsilon, tokens)
//     out      half_vectors_bytes(Columns, Words, tokens), see note [half vectors]
//     x        [tokens][Columns]; norm: the weights of its RMS norm [Columns] or null
//     grid     kChunkTokens blocks for each begun 64 tokens, of half_vectors_threads(Columns)
#pragma once
#include "base/fragment_mma.cuh"
#include "base/launch.cuh"
#include "base/mma.cuh"
#include "base/warp.cuh"
#include "layout/packing.cuh"
#include "ops/chunk_geometry.h"

namespace LANE_NAMESPACE {

/// Powers of two: `scale` takes the greatest value `largest` to between 2^14 and 2^15.
struct VectorScale {
  float scale, inverse;
};
__device__ __forceinline__ VectorScale scale_of_vector(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23);
  const int e = min(max(exponent, 15), 254);  // both powers are normal
  return {__uint_as_float(static_cast<uint32_t>(268 - e) << 23), __uint_as_float(static_cast<uint32_t>(e - 14) << 23)};
}

/// Sum and greatest over the block.
struct VectorTotals {
  float squares, largest;
};
template <int Warps>
__device__ __forceinline__ VectorTotals totals_of_block(VectorTotals own, float (&scratch)[2][Warps]) {
  const float squares = warp_sum(own.squares), largest = warp_max(own.largest);
  if (lane_index() == 0) scratch[0][warp_index()] = squares, scratch[1][warp_index()] = largest;
  __syncthreads();
  VectorTotals all{0, 0};
  LANE_UNROLL
  for (int w = 0; w < Warps; w++) all.squares += scratch[0][w], all.largest = fmaxf(all.largest, scratch[1][w]);
  return all;
}

/// Two scaled values as halves, `x` in the low bits, and what these lose.
struct RoundedPair {
  uint32_t halves;
  float lost_x, lost_y;
  __device__ __forceinline__ RoundedPair(float x, float y) {
    const __half l = __float2half(x), h = __float2half(y);
    halves = static_cast<uint32_t>(__half_as_ushort(h)) << 16 | __half_as_ushort(l);
    lost_x = x - __half2float(l), lost_y = y - __half2float(h);
  }
  __device__ __forceinline__ uint16_t rests() const { return pair_of_e4m3(lost_x * kRestGain, lost_y * kRestGain); }
};

/// Four columns of token `row` of its tile; `quad`: their first column / 4. `tiles`: the 64 tokens'.
template <int Words>
__device__ __forceinline__ void store_quad(uint8_t* tiles, int row, int quad, float4 v) {
  constexpr int kStepQuads = kChunkColumns / 4;
  const RoundedPair low(v.x, v.y), high(v.z, v.w);
  uint8_t* step = tiles + quad / kStepQuads * chunk_step_bytes(Words);
  const int entry = quad % kStepQuads / 4 * 2, at = quad % 4 * 4;
  store_as(step + swizzled(row, entry) + at, low.halves), store_as(step + swizzled(row, entry + 1) + at, high.halves);
  if (Words == 1) return;
  uint8_t* bytes = step + kChunkTileBytes + byte_tile_place(row, quad % kStepQuads * 4);
  const auto word = [](uint16_t l, uint16_t h) { return static_cast<uint32_t>(h) << 16 | l; };
  store_as(bytes, word(low.rests(), high.rests()));
  store_as(bytes + kChunkByteTileBytes, word(pair_of_e4m3(v.x * kCoarseScale, v.y * kCoarseScale),
                                             pair_of_e4m3(v.z * kCoarseScale, v.w * kCoarseScale)));
}

/// A block's sum; behind a slice's last, zeros for the blocks that its window lacks.
template <int Columns>
__device__ __forceinline__ void store_sum(uint8_t* sums, int row, int block, float sum) {
  constexpr Slices kSlices = slices(Columns);
  const WindowBlock at = window_block(kSlices, block);
  const HalfPair pair = split_to_halves(sum * kSumScale, 0.f);
  uint8_t* to = sums + at.window * kChunkSumBytes;
  const bool last = block + 1 == Columns / kBlockColumns || (block + 1) % kSlices.full == 0;
  for (int i = at.at; i < (last ? kChunkWindowBlocks : at.at + 1); i++) {
    store_as(to + core_tile_place(row, i), static_cast<uint16_t>(i == at.at ? pair.high : 0));
    store_as(to + core_tile_place(row, 8 + i), static_cast<uint16_t>(i == at.at ? pair.rest : 0));
  }
}

template <int Columns, int Words>
__global__ __launch_bounds__(half_vectors_threads(Columns)) void half_vectors(uint8_t* out, const float* x,
                                                                              const float* norm, float epsilon,
                                                                              int tokens) {
  constexpr int kThreads = half_vectors_threads(Columns), kQuads = Columns / 4,
                kTurns = (kQuads + kThreads - 1) / kThreads;
  __shared__ float scratch[2][kThreads / 32];
  admit_consumer();
  await_producer();
  const int token = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const auto* from = reinterpret_cast<const float4*>(x + static_cast<int64_t>(token) * Columns);
  float4 v[kTurns];
  VectorTotals own{0, 0};
  LANE_UNROLL
  for (int i = 0; i < kTurns; i++) {
    const int quad = thread + i * kThreads;
    v[i] = token < tokens && quad < kQuads ? __ldcg(from + quad) : make_float4(0, 0, 0, 0);
    own.squares += fmaf(v[i].x, v[i].x, v[i].y * v[i].y) + fmaf(v[i].z, v[i].z, v[i].w * v[i].w);
    if (norm && quad < kQuads) {
      const float4 w = __ldg(reinterpret_cast<const float4*>(norm) + quad);
      v[i] = make_float4(v[i].x * w.x, v[i].y * w.y, v[i].z * w.z, v[i].w * w.w);
    }
    own.largest = fmaxf(own.largest, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
  }
  const VectorTotals all = totals_of_block(own, scratch);
  const VectorScale s = scale_of_vector(all.largest);
  uint8_t* base = out + static_cast<int64_t>(token / kChunkTokens) * chunk_vector_bytes(Columns, Words);
  const int row = token % kChunkTokens;
  uint8_t* sums = base + Columns / kChunkColumns * chunk_step_bytes(Words);
  LANE_UNROLL
  for (int i = 0; i < kTurns; i++) {
    const int quad = thread + i * kThreads;
    const float4 scaled = make_float4(v[i].x * s.scale, v[i].y * s.scale, v[i].z * s.scale, v[i].w * s.scale);
    float sum = (scaled.x + scaled.y) + (scaled.z + scaled.w);
    for (int o = 1; o < 8; o <<= 1) sum += __shfl_xor_sync(LANE_FULL_WARP, sum, o);
    if (quad < kQuads) store_quad<Words>(base, row, quad, scaled);
    if (quad % 8 == 0 && quad < kQuads) store_sum<Columns>(sums, row, quad / 8, sum);
  }
  static_assert(kThreads >= kChunkCounters);
  if (token == 0 && thread < kChunkCounters)
    reinterpret_cast<int*>(out + chunk_counters_offset(Columns, Words, tokens))[thread] = 0;
  if (thread) return;
  const float factor = norm ? rsqrtf(fmaf(all.squares, 1.f / Columns, epsilon)) : 1.f;
  auto* factors = reinterpret_cast<float*>(base + chunk_vector_bytes(Columns, Words)) - kChunkTokens;
  factors[row] = factor * s.inverse;
}

}  // namespace LANE_NAMESPACE
