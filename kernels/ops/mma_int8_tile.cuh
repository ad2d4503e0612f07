// Sixteen rows of quantized weights, as stored, times several tokens' quantized activations (ops/quantize.cuh): a block
// of kInt8Warps warps on the integer tensor cores of sm_80 and up.
//
// The bits are those of ops/matrix_product_int8.cuh, whose lane l adds the groups l, l + 32, ... of 32 columns, and
// whose 32 sums meet 16, 8, 4, 2 and 1 apart. Here a warp has four of those lanes, 8 apart: a group's integer sum is
// exact whoever makes it, its share is added as there, to a sum of its own in registers, and the warp makes the first
// two levels of the tree; the block makes the others in shared memory.
//
// A lane unpacks a row's group into bytes, which the warp takes back from shared memory as fragments. The next groups'
// weights are on their way while it multiplies.
#pragma once
#include "base/keep_loop.h"
#include "base/mma.cuh"
#include "ops/matrix_product_int8.cuh"
#include "ops/mma_int8_geometry.h"

namespace LANE_NAMESPACE {

template <class Q, int PLANES, int TOKENS>
struct Int8Tile {
  static constexpr int kLeaves = 4;                                       // lanes of the other kernel, in a warp
  static constexpr int kTokenGroups = TOKENS / 8;                         // a tensor core has eight tokens
  static constexpr int kSums = kInt8Rows * TOKENS;                        // of the block
  static constexpr int kOwn = (kSums + kInt8Threads - 1) / kInt8Threads;  // of a thread, at the end

  /// A warp's weights, a tile of 16 rows by 32 columns for each leaf.
  struct Unpacked {
    uint8_t codes[kLeaves][kInt8Rows * kGroup];  // as load_fragment takes them
    float scale[kLeaves][Q::kScales][kInt8Rows], minimum[kLeaves][Q::kScales][kInt8Rows];
  };
  struct Shared {
    Unpacked unpacked[kInt8Warps];
    float sums[kInt8Warps][TOKENS * kInt8SumsStride];
  };
  static_assert(sizeof(Shared) <= mma_int8_shared_bytes(TOKENS), "what the launch asks for");

  /// Where the lane's tokens lie, in groups from the first activation row's: of its column of B, of its columns of C.
  struct Tokens {
    const QuantizedGroup<PLANES>* x;
    int column[kTokenGroups], pair[kTokenGroups][2];
  };
  /// Token t is activation row `x_row(t)`, one that is not there the last.
  template <class Rows>
  static __device__ __forceinline__ Tokens tokens_of(const uint8_t* x, const Rows& x_row, int tokens, int groups) {
    const int lane = lane_index();
    Tokens of{reinterpret_cast<const QuantizedGroup<PLANES>*>(x), {}, {}};
    const auto place = [&](int t) { return static_cast<int>(x_row(min(t, tokens - 1))) * groups; };
    LANE_UNROLL
    for (int n = 0; n < kTokenGroups; n++) {
      of.column[n] = place(8 * n + lane / 4);
      of.pair[n][0] = place(8 * n + lane % 4 * 2);
      of.pair[n][1] = place(8 * n + lane % 4 * 2 + 1);
    }
    return of;
  }

  /// A lane's share of the weights on their way: two groups of a row.
  struct Ahead {
    uint32_t words[2][8];
    float scale[2][Q::kScales], minimum[2][Q::kScales];
  };
  /// Leaves 2 i + lane / 16, of the 32 groups from `first` on; a group behind the row's end is its last.
  static __device__ __forceinline__ void read_ahead(Ahead& ahead, const uint8_t* row, int first, int groups) {
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      const int group = min(first + warp_index() + kInt8Warps * (2 * i + lane_index() / 16), groups - 1);
      Q::unpack(row, group, ahead.words[i]);
      Q::scales(row, group, ahead.scale[i], ahead.minimum[i]);
    }
  }
  static __device__ __forceinline__ void store(Unpacked& to, const Ahead& ahead) {
    const int row = lane_index() % 16;
    LANE_UNROLL
    for (int i = 0; i < 2; i++) {
      const int leaf = 2 * i + lane_index() / 16;
      const uint32_t(&w)[8] = ahead.words[i];
      auto* codes = reinterpret_cast<uint4*>(to.codes[leaf]) + row;
      codes[0] = make_uint4(w[0], w[1], w[2], w[3]);
      codes[kInt8Rows] = make_uint4(w[4], w[5], w[6], w[7]);
      LANE_UNROLL
      for (int s = 0; s < Q::kScales; s++) {
        to.scale[leaf][s][row] = ahead.scale[i][s];
        if (Q::kHasMinimum) to.minimum[leaf][s][row] = ahead.minimum[i][s];
      }
    }
  }

  /// A lane's sums: rows lane / 4 and 8 below, of tokens 2c and 2c + 1 (c = lane % 4) of each eight.
  struct Sums {
    float of[kLeaves][kTokenGroups][4];
  };
  using Integers = int[Q::kScales][4];
  static __device__ __forceinline__ void multiply(Integers& integers, const uint4& a, const uint32_t* plane) {
    const uint32_t b0 = plane[lane_index() % 4], b1 = plane[lane_index() % 4 + 4];
    if constexpr (Q::kScales == 1) {
      mma_int8(integers[0], a, b0, b1);
    } else {
      mma_int8(integers[0], a.x, a.y, b0);
      mma_int8(integers[1], a.z, a.w, b1);
    }
  }

  /// Adds a group of columns to a leaf's sums.
  static __device__ __forceinline__ void add_group(float (&sums)[kTokenGroups][4], const Unpacked& w, int leaf,
                                                   const Tokens& tokens, int group) {
    const uint4 a = load_fragment(w.codes[leaf]);
    LANE_UNROLL
    for (int n = 0; n < kTokenGroups; n++) {
      const QuantizedGroup<PLANES>& column = tokens.x[tokens.column[n] + group];
      Integers integers[PLANES] = {};
      LANE_UNROLL
      for (int p = 0; p < PLANES; p++) multiply(integers[p], a, column.plane[p]);
      LANE_UNROLL
      for (int i = 0; i < 4; i++) {
        const int row = lane_index() / 4 + i / 2 * 8;
        const ActivationSums x = activation_sums(tokens.x[tokens.pair[n][i % 2] + group]);
        LANE_UNROLL
        for (int s = 0; s < Q::kScales; s++) {
          const int total = PLANES == 2 ? 256 * integers[0][s][i] + integers[PLANES - 1][s][i] : integers[0][s][i];
          sums[n][i] = add_share<Q>(sums[n][i], w.scale[leaf][s][row], w.minimum[leaf][s][row], total, x, s);
        }
      }
    }
  }

  /// The sum of a warp's leaves: 16 apart, then 8.
  static __device__ __forceinline__ void store_sums(float* to, const Sums& sums) {
    LANE_UNROLL
    for (int n = 0; n < kTokenGroups; n++) {
      LANE_UNROLL
      for (int i = 0; i < 4; i++) {
        const float even = __fadd_rn(sums.of[0][n][i], sums.of[2][n][i]);
        const float odd = __fadd_rn(sums.of[1][n][i], sums.of[3][n][i]);
        to[(8 * n + lane_index() % 4 * 2 + i % 2) * kInt8SumsStride + lane_index() / 4 + i / 2 * 8] =
            __fadd_rn(even, odd);
      }
    }
  }

  /// A thread's results: number i is of row `row(i)` of the tile and token `token(i)`, which it may not have.
  static __device__ __forceinline__ int row(int i) { return own(i) % kInt8Rows; }
  static __device__ __forceinline__ int token(int i) { return own(i) / kInt8Rows; }
  static __device__ __forceinline__ int own(int i) { return static_cast<int>(threadIdx.x) + i * kInt8Threads; }

  /// Rows [first_row, first_row + 16) of `weights`, which has `rows`, times the tokens. By the whole block.
  static __device__ __forceinline__ void compute(float (&results)[kOwn], Shared& shared, const uint8_t* weights,
                                                 int first_row, int rows, int groups, const Tokens& tokens) {
    const uint8_t* own_row = weights + min(first_row + lane_index() % 16, rows - 1) * row_bytes<Q>(groups * kGroup);
    Unpacked& unpacked = shared.unpacked[warp_index()];
    Sums sums = {};
    Ahead ahead;
    read_ahead(ahead, own_row, 0, groups);
    LANE_KEEP_LOOP
    for (int first = 0; first < groups; first += kWarpLanes) {
      store(unpacked, ahead);
      __syncwarp();
      if (first + kWarpLanes < groups) read_ahead(ahead, own_row, first + kWarpLanes, groups);
      LANE_UNROLL
      for (int leaf = 0; leaf < kLeaves; leaf++) {
        const int group = first + warp_index() + kInt8Warps * leaf;
        if (group < groups) add_group(sums.of[leaf], unpacked, leaf, tokens, group);
      }
      __syncwarp();
    }
    store_sums(shared.sums[warp_index()], sums);
    __syncthreads();
    LANE_UNROLL
    for (int i = 0; i < kOwn; i++)
      results[i] = own(i) < kSums ? sum_of_warps(shared, token(i) * kInt8SumsStride + row(i)) : 0.0f;
    __syncthreads();  // the next tile's sums take their place
  }

  /// 4, 2 and 1 apart.
  static __device__ __forceinline__ float sum_of_warps(const Shared& shared, int at) {
    float p[kInt8Warps];
    LANE_UNROLL
    for (int warp = 0; warp < kInt8Warps; warp++) p[warp] = shared.sums[warp][at];
    return __fadd_rn(__fadd_rn(__fadd_rn(p[0], p[4]), __fadd_rn(p[2], p[6])),
                     __fadd_rn(__fadd_rn(p[1], p[5]), __fadd_rn(p[3], p[7])));
  }
};

}  // namespace LANE_NAMESPACE
