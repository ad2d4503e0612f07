// What a token brings to split attention (ops/attention_split.cuh): its queries, and its own key and value where they
// are new. A lane reads the columns it makes straight into registers, norms and turns them there, and leaves them in
// shared memory as tensor cores and caches want them. One read and one barrier stand between a producer's store and the
// first score: each more of either is 0.2 to 0.6 us of a launch that takes 3.
#pragma once
#include "base/keep_loop.h"
#include "base/launch.cuh"
#include "base/mma.cuh"
#include "base/warp.cuh"

namespace LANE_NAMESPACE {

/// What the token brings: its queries (of this part) and, where they are new, its key and value (of this group).
struct SplitToken {
  const float *q, *k, *v, *q_norm, *k_norm;
  float epsilon;
  const float* pairs;      // (cos, sin) of the position; not read where nothing turns
  int turned, neighbours;  // as in ops/position.cuh; 0 where nothing turns
  float scale;             // of the queries
};
/// Where this block's heads are.
struct SplitPlaces {
  int position;
  uint8_t *keys, *values;      // the group's head in row 0 of the caches
  int64_t key_row, value_row;  // bytes of a cache row

  __device__ __forceinline__ uint8_t* own_key() const { return keys + position * key_row; }
  __device__ __forceinline__ uint8_t* own_value() const { return values + position * value_row; }
};
/// In shared memory: fragments of A, [kKeyPieces * 2][32 lanes]; the token's own row as the caches hold it; and heads
/// as they are before they turn, [Heads + 1][Width].
struct SplitTokenMemory {
  uint4* query;
  uint8_t *key, *value;
  float* heads;
};

/// Heads over a block's lanes: a head has a warp, or kLanes of one where it is narrow, and a lane kEach pieces of four
/// columns. The key's lanes are of the first warp that has no query, where there is one: what it does is other code.
template <class S>
struct TokenShape {
  static constexpr int kPieces = S::kWidth / 4, kEach = (kPieces + 31) / 32;
  static constexpr int kLanes = kPieces > 16 ? 32 : kPieces > 8 ? 16 : kPieces > 4 ? 8 : 4;
  static constexpr int kAtOnce = S::kThreads / kLanes, kOfWarp = 32 / kLanes;
  static constexpr int kBeyond = (S::kHeads + kOfWarp - 1) / kOfWarp * kOfWarp;
  static constexpr int kKey = kBeyond < kAtOnce ? kBeyond : S::kHeads;
  static constexpr int kRounds = (kKey + 1 + kAtOnce - 1) / kAtOnce;
  static_assert(S::kValueWidth / 4 <= S::kThreads, "a thread brings four columns of the value");
};
template <class S>
__device__ __forceinline__ int token_piece(int e) {
  return lane_index() % TokenShape<S>::kLanes + TokenShape<S>::kLanes * e;
}
template <class S>
__device__ __forceinline__ int token_head(int round) {
  return static_cast<int>(threadIdx.x) / TokenShape<S>::kLanes + round * TokenShape<S>::kAtOnce;
}

/// How a lane's columns turn: each one's (cos, sin), the sine with the sign of the other column's share, and which that
/// is; itself, by a sine of 0, where none. On hand before the producer has ended.
template <class S>
struct TokenTurns {
  using T = TokenShape<S>;
  float cosine[T::kEach][4], sine[T::kEach][4];
  int other[T::kEach][4];

  __device__ __forceinline__ explicit TokenTurns(const SplitToken& token) {
    const int half = token.turned / 2, distance = token.neighbours ? 1 : half;
    LANE_UNROLL
    for (int i = 0; i < T::kEach * 4; i++) {
      const int column = 4 * token_piece<S>(i / 4) + i % 4;
      const bool turns = column < token.turned, second = token.neighbours ? column % 2 == 1 : column >= half;
      const int pair = token.neighbours ? column / 2 : second ? column - half : column;
      const float2 turn = turns ? __ldg(reinterpret_cast<const float2*>(token.pairs) + pair) : make_float2(1, 0);
      cosine[i / 4][i % 4] = turn.x, sine[i / 4][i % 4] = second ? turn.y : -turn.y;
      other[i / 4][i % 4] = !turns ? column : second ? column - distance : column + distance;
    }
  }
};

/// A lane's columns of one head, and their norm's weights.
template <class S>
struct TokenHead {
  using T = TokenShape<S>;
  float4 x[T::kEach], weight[T::kEach];

  /// Ahead of the producer.
  __device__ __forceinline__ void read_weights(const float* norm) {
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++)
      weight[e] = norm && token_piece<S>(e) < T::kPieces
                      ? read_here(reinterpret_cast<const float4*>(norm) + token_piece<S>(e))
                      : make_float4(1, 1, 1, 1);
  }
  __device__ __forceinline__ void read(const float* head) {
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++)
      x[e] = head && token_piece<S>(e) < T::kPieces ? __ldcg(reinterpret_cast<const float4*>(head) + token_piece<S>(e))
                                                    : make_float4(0, 0, 0, 0);
  }
  /// By all of a warp.
  __device__ __forceinline__ void norm(float epsilon, bool normed) {
    float squares = 0;
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++)
      squares = fmaf(x[e].x, x[e].x, fmaf(x[e].y, x[e].y, fmaf(x[e].z, x[e].z, fmaf(x[e].w, x[e].w, squares))));
    LANE_UNROLL
    for (int o = T::kLanes / 2; o > 0; o /= 2) squares += __shfl_xor_sync(LANE_FULL_WARP, squares, o);
    const float f = normed ? rsqrtf(squares / static_cast<float>(S::kWidth) + epsilon) : 1.f;
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++)
      x[e] = make_float4(x[e].x * (f * weight[e].x), x[e].y * (f * weight[e].y), x[e].z * (f * weight[e].z),
                         x[e].w * (f * weight[e].w));
  }
  __device__ __forceinline__ void store(float* head) const {
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++)
      if (token_piece<S>(e) < T::kPieces) reinterpret_cast<float4*>(head)[token_piece<S>(e)] = x[e];
  }
  /// With the columns of `head`, where all lanes have stored theirs.
  __device__ __forceinline__ void turn(const float* head, const TokenTurns<S>& turns) {
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++) {
      if (token_piece<S>(e) >= T::kPieces) continue;
      float v[4] = {x[e].x, x[e].y, x[e].z, x[e].w};
      LANE_UNROLL
      for (int c = 0; c < 4; c++) v[c] = fmaf(v[c], turns.cosine[e][c], head[turns.other[e][c]] * turns.sine[e][c]);
      x[e] = make_float4(v[0], v[1], v[2], v[3]);
    }
  }
};

/// Four values as halves in 8 bytes, into shared memory and, where it is not null, a cache's row.
__device__ __forceinline__ void store_halves(uint8_t* shared, uint8_t* row, int piece, float4 v) {
  const auto word = [](float low, float high) {
    return static_cast<uint32_t>(__half_as_ushort(__float2half(high))) << 16 | __half_as_ushort(__float2half(low));
  };
  const uint2 bits = make_uint2(word(v.x, v.y), word(v.z, v.w));
  reinterpret_cast<uint2*>(shared)[piece] = bits;
  if (row) reinterpret_cast<uint2*>(row)[piece] = bits;
}

/// The fragments that no query fills: of heads and columns that are not there.
template <class S>
__device__ __forceinline__ void clear_fragments(uint4* query) {
  if (S::kHeads == 8 && S::kWidth % 32 == 0) return;
  LANE_KEEP_LOOP
  for (int i = threadIdx.x; i < S::kKeyPieces * 64; i += S::kThreads) {
    const int g = i % 32 / 4, column = 8 * (i % 4 + i / 64 * 4);
    if (g >= S::kHeads || column >= S::kWidth) query[i] = make_uint4(0, 0, 0, 0);
  }
}

/// The key and value that the caches have already.
template <class S>
__device__ __forceinline__ void read_cached_row(const SplitPlaces& at, const SplitTokenMemory& memory) {
  LANE_KEEP_LOOP
  for (int i = threadIdx.x; i < (S::kWidth + S::kValueWidth) / 4; i += S::kThreads) {
    const bool is_key = i < S::kWidth / 4;
    const int piece = is_key ? i : i - S::kWidth / 4;
    const uint2* row = reinterpret_cast<const uint2*>(is_key ? at.own_key() : at.own_value());
    reinterpret_cast<uint2*>(is_key ? memory.key : memory.value)[piece] = __ldcg(row + piece);
  }
}

/// A token on its way into shared memory: made ahead of its producer, bring() behind it. By the whole block, which
/// meets before it reads the result. `own`: the token's own row, too; `writes`: and into the caches where it is new.
/// The queries' fragments: lane 4 g + c's columns of piece j are 8 (c + 4 j) to 8 (c + 4 j) + 7 of head g.
template <class S>
struct TokenBringer {
  using T = TokenShape<S>;
  const SplitToken& token;
  const SplitTokenMemory& memory;
  const SplitPlaces& at;
  bool own;
  TokenTurns<S> turns;
  TokenHead<S> head[T::kRounds];
  const float *from[T::kRounds], *value;  // what the lane reads; null: nothing
  uint8_t *key_row, *value_row;           // where the caches get it; null: they do not

  __device__ __forceinline__ TokenBringer(const SplitToken& t, const SplitTokenMemory& m, const SplitPlaces& places,
                                          bool owns, bool writes)
      : token(t), memory(m), at(places), own(owns), turns(t) {
    const bool makes = own && token.k;
    LANE_UNROLL
    for (int r = 0; r < T::kRounds; r++) {
      const int h = token_head<S>(r);
      head[r].read_weights(h < S::kHeads ? token.q_norm : token.k_norm);
      from[r] = h < S::kHeads ? token.q + h * S::kWidth : h == T::kKey && makes ? token.k : nullptr;
      make_here(from[r]);
    }
    value = makes && value_piece() < S::kValueWidth / 4 ? token.v + 4 * value_piece() : nullptr;
    key_row = writes ? at.own_key() : nullptr, value_row = writes ? at.own_value() : nullptr;
    make_here(value), make_here(key_row), make_here(value_row);
    clear_fragments<S>(memory.query);
  }
  __device__ __forceinline__ void bring() {
    LANE_UNROLL
    for (int r = 0; r < T::kRounds; r++) head[r].read(from[r]);
    const float4 v = value ? __ldcg(reinterpret_cast<const float4*>(value)) : make_float4(0, 0, 0, 0);
    LANE_UNROLL
    for (int r = 0; r < T::kRounds; r++) bring_head(head[r], token_head<S>(r), from[r]);
    if (value) store_halves(memory.value, value_row, value_piece(), v);
    if (own && !token.k) read_cached_row<S>(at, memory);
  }

 private:
  /// The value is brought by the last threads: they have the fewest heads.
  __device__ __forceinline__ static int value_piece() { return S::kThreads - 1 - static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ void bring_head(TokenHead<S>& x, int h, bool there) {
    const bool query = h < S::kHeads;
    if (token.q_norm || token.k_norm) x.norm(token.epsilon, query ? token.q_norm : token.k_norm);
    if (token.turned) {
      float* shared = memory.heads + min(h, S::kHeads) * S::kWidth;
      if (there) x.store(shared);
      __syncwarp();
      if (there) x.turn(shared, turns);
    }
    if (!there) return;
    LANE_UNROLL
    for (int e = 0; e < T::kEach; e++) {
      const int p = token_piece<S>(e);
      if (p >= T::kPieces) continue;
      if (!query) {
        store_halves(memory.key, key_row, p, x.x[e]);
        continue;
      }
      const HalfPair near = split_to_halves(token.scale * x.x[e].x, token.scale * x.x[e].y);
      const HalfPair far = split_to_halves(token.scale * x.x[e].z, token.scale * x.x[e].w);
      memory.query[p / 8 * 64 + p % 2 * 32 + 4 * h + p / 2 % 4] = make_uint4(near.high, near.rest, far.high, far.rest);
    }
  }
};

}  // namespace LANE_NAMESPACE
