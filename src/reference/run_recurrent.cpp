// Recurrent mixers: the short convolution over its ring, and the gated delta rule.
#include <algorithm>
#include <cmath>

#include "frame.h"

namespace lane::reference {

template <class T>
void run_short_convolution(Frame<T>& f, const Op& op) {
  const Rows<const T> ring = f.in(op, 0), x = f.in(op, 1), taps = f.in(op, 2);
  const Rows<T> y = f.out(op);
  for (int64_t r = 0; r < y.count; ++r) {
    for (int64_t c = 0; c < y.stride; ++c) {
      y[r][c] = 0;
      for (int64_t i = 0; i < taps.stride; ++i) {  // the oldest tap first, over the ring and then x
        const int64_t row = r + i;
        y[r][c] += taps[c][i] * (row < ring.count ? ring[row][c] : x[row - ring.count][c]);
      }
    }
  }
}

template <class T>
void run_shift(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 1);
  const Rows<T> ring = f.out(op);
  for (int64_t r = 0; r < ring.count; ++r) {
    const int64_t row = r + x.count;  // of the ring and then x
    std::copy_n(row < ring.count ? ring[row] : x[row - ring.count], ring.stride, ring[r]);
  }
}

template <class T>
void run_decay(Frame<T>& f, const Op& op) {
  const Rows<const T> a = f.in(op, 0);
  const T *dt = f.in(op, 1).data, *rate = f.in(op, 2).data;
  const Rows<T> y = f.out(op);
  for (int64_t r = 0; r < y.count; ++r)
    for (int64_t h = 0; h < y.stride; ++h) y[r][h] = std::exp(rate[h] * softplus(a[r][h] + dt[h]));
}

namespace {

/// The operands that the rule and its reading share: k, v, d, b from operand `first` on.
template <class T>
struct Delta {
  Delta(const Frame<T>& f, const Op& op, size_t first)
      : k(f.in(op, first)),
        v(f.in(op, first + 1)),
        d(f.in(op, first + 2)),
        b(f.in(op, first + 3)),
        heads(op.integer(OptionKey::Heads)),
        groups(op.integer(OptionKey::Groups)),
        width(op.integer(OptionKey::Width)),
        tiled(op.integer(OptionKey::Tiled) == 1) {}

  int64_t key_head(int64_t h) const { return tiled ? h % groups : h / (heads / groups); }

  /// M <- dM, then M <- M + b (v - Mk) k', for head h and row r. M has a row for each value, a column for each key.
  void update(T* memory, int64_t h, int64_t r) const {
    const T* key = k[r] + key_head(h) * width;
    const T* value = v[r] + h * width;
    for (int64_t j = 0; j < width; ++j) {
      T* row = memory + j * width;
      T read = 0;
      for (int64_t i = 0; i < width; ++i) read += (row[i] *= d[r][h]) * key[i];
      const T delta = b[r][h] * (value[j] - read);
      for (int64_t i = 0; i < width; ++i) row[i] += delta * key[i];
    }
  }

  Rows<const T> k, v, d, b;
  int64_t heads, groups, width;
  bool tiled;
};

}  // namespace

template <class T>
void run_delta_rule(Frame<T>& f, const Op& op) {
  const Delta<T> delta(f, op, 1);
  T* memory = f.out(op).data;
  for (int64_t h = 0; h < delta.heads; ++h)
    for (int64_t r = 0; r < delta.k.count; ++r) delta.update(memory + h * delta.width * delta.width, h, r);
}

template <class T>
void run_delta_reading(Frame<T>& f, const Op& op) {
  const Delta<T> delta(f, op, 2);
  const int64_t width = delta.width;
  const Rows<const T> q = f.in(op, 1);
  const Rows<T> y = f.out(op);
  for (int64_t h = 0; h < delta.heads; ++h) {
    const T* state = f.in(op, 0).data + h * width * width;
    std::vector<T> memory(state, state + width * width);  // the state itself changes only where it is Set
    for (int64_t r = 0; r < y.count; ++r) {
      delta.update(memory.data(), h, r);
      const T* query = q[r] + delta.key_head(h) * width;
      for (int64_t j = 0; j < width; ++j) {
        T sum = 0;
        for (int64_t i = 0; i < width; ++i) sum += memory[size_t(j * width + i)] * query[i];
        y[r][h * width + j] = sum;
      }
    }
  }
}

LANE_RUN_FOR_BOTH(run_short_convolution)
LANE_RUN_FOR_BOTH(run_shift)
LANE_RUN_FOR_BOTH(run_decay)
LANE_RUN_FOR_BOTH(run_delta_rule)
LANE_RUN_FOR_BOTH(run_delta_reading)

}  // namespace lane::reference
