// Row-wise ops: each row of the result from the same row of the operands.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "frame.h"
#include "lane/error.h"

namespace lane::reference {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}
template <class T>
T silu(T x) {
  return x * sigmoid(x);
}
template <class T>
T gelu(T x) {
  const T inner = T(std::sqrt(2 / std::numbers::pi)) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}
template <class T>
T softplus(T x) {
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}
template double sigmoid(double);
template float sigmoid(float);
template double softplus(double);
template float softplus(float);

template <class T>
void run_row_lookup(Frame<T>& f, const Op& op) {
  const Rows<const int32_t> ids = f.ids(op, 1);
  const Rows<T> y = f.out(op);
  const int64_t rows = f.shape(op, 0).rows;
  const bool range = op.from != op.through;  // of positions
  for (int64_t r = 0; r < y.count; ++r) {
    const int64_t id = range ? ids.data[0] + r : ids.data[r];
    if (id < 0 || id >= rows)
      throw UsageError("row " + std::to_string(id) + " of '" + f.graph.value(op.operands[0]).name + "', which has " +
                       std::to_string(rows));
    decode_row(f.matrix(op, 0), id, y[r]);
  }
}

template <class T>
void run_elementwise(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0), y = f.in(op, 1);
  const Rows<T> z = f.out(op);
  for (int64_t r = 0; r < z.count; ++r) {
    const T* other = y[y.count == 1 ? 0 : r];
    for (int64_t c = 0; c < z.stride; ++c) {
      const T b = other[y.stride == 1 ? 0 : c];
      z[r][c] = op.kind == OpKind::Sum ? x[r][c] + b : x[r][c] * b;
    }
  }
}

namespace {

template <class T>
T mapped(OpKind kind, T x, T option) {
  switch (kind) {
    case OpKind::ScaledCopy:
      return option * x;
    case OpKind::Silu:
      return silu(x);
    case OpKind::Gelu:
      return gelu(x);
    case OpKind::Sigmoid:
      return sigmoid(x);
    case OpKind::Softplus:
      return softplus(x);
    case OpKind::SquareRelu:
      return x > 0 ? x * x : T(0);
    case OpKind::Softcap:
      return option * std::tanh(x / option);
    case OpKind::Clamp:
      return std::clamp(x, -option, option);
    default:
      throw InternalError("an op that maps no values");
  }
}

template <class T>
T gated(const Op& op, T g, T u) {
  switch (op.kind) {
    case OpKind::SiluGate:
      return silu(g) * u;
    case OpKind::GeluGate:
      return gelu(g) * u;
    case OpKind::SigmoidGate:
      return sigmoid(g) * u;
    default: {
      const T limit = T(op.option(OptionKey::Limit)), slope = T(op.option(OptionKey::Slope));
      const T low = std::min(g, limit);
      return low * sigmoid(slope * low) * (std::clamp(u, -limit, limit) + T(1));
    }
  }
}

}  // namespace

template <class T>
void run_map(Frame<T>& f, const Op& op) {
  const T option = T(op.option(op.kind == OpKind::ScaledCopy ? OptionKey::Factor : OptionKey::Limit));
  const Rows<const T> x = f.in(op, 0);
  const Rows<T> y = f.out(op);
  for (int64_t i = 0; i < x.count * x.stride; ++i) y.data[i] = mapped(op.kind, x.data[i], option);
}

template <class T>
void run_gate(Frame<T>& f, const Op& op) {
  const Rows<const T> g = f.in(op, 0), u = f.in(op, 1);
  const Rows<T> y = f.out(op);
  for (int64_t i = 0; i < g.count * g.stride; ++i) y.data[i] = gated(op, g.data[i], u.data[i]);
}

namespace {

/// One head: (x - mean) * scale, where rms and length norms have no mean. Sums are in double for both types.
template <class T>
void normalise(const Op& op, const T* x, int64_t width, T* y) {
  double mean = 0, squares = 0;
  if (op.kind == OpKind::LayerNorm)
    for (int64_t i = 0; i < width; ++i) mean += x[i] / double(width);
  for (int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double size = op.kind == OpKind::LengthNorm ? squares : squares / double(width);
  const double scale = 1 / std::sqrt(size + op.option(OptionKey::Epsilon));
  for (int64_t i = 0; i < width; ++i) y[i] = T((x[i] - mean) * scale);
}

}  // namespace

template <class T>
void run_norm(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0);
  const Rows<T> y = f.out(op);
  const int64_t width = op.integer(OptionKey::Width, x.stride);
  for (int64_t at = 0; at < x.count * x.stride; at += width) normalise(op, x.data + at, width, y.data + at);
  for (size_t i = 1; f.given(op, i); ++i) {  // weight, then bias: of one head or of a whole row
    const T* w = f.in(op, i).data;
    const int64_t n = f.shape(op, i).elements();
    for (int64_t at = 0; at < y.count * y.stride; ++at)
      y.data[at] = i == 1 ? y.data[at] * w[at % n] : y.data[at] + w[at % n];
  }
}

template <class T>
void run_head_slice(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0);
  const Rows<T> y = f.out(op);
  const int64_t heads = op.integer(OptionKey::Heads), width = op.integer(OptionKey::Width);
  const int64_t first = op.integer(OptionKey::From) - 1, count = op.integer(OptionKey::Through) - first;
  for (int64_t r = 0; r < x.count; ++r)
    for (int64_t h = 0; h < heads; ++h) std::copy_n(x[r] + h * width + first, count, y[r] + h * count);
}

template <class T>
void run_join(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0), y = f.in(op, 1);
  const Rows<T> z = f.out(op);
  const int64_t heads = op.integer(OptionKey::Heads, 1);
  const int64_t of_x = x.stride / heads, of_y = z.stride / heads - of_x;
  const bool shared = y.stride == of_y;  // one head of y for all
  for (int64_t r = 0; r < z.count; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      T* head = z[r] + h * (of_x + of_y);
      std::copy_n(x[r] + h * of_x, of_x, head);
      std::copy_n(y[r] + (shared ? 0 : h * of_y), of_y, head + of_x);
    }
  }
}

namespace {

/// Rows `first` to `first + count` of an operand, of either type, to where `at` of the result points.
template <class V>
void copy_rows(const std::vector<V>& from, int64_t first, int64_t count, int64_t columns, std::vector<V>& to,
               int64_t at) {
  if (from.empty()) return;
  std::copy_n(from.begin() + first * columns, count * columns, to.begin() + at * columns);
}

}  // namespace

template <class T>
void run_rows(Frame<T>& f, const Op& op) {
  int64_t at = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Shape& s = f.shape(op, i);
    const int64_t first = op.from ? op.from->offset - 1 : 0;
    const int64_t count = op.through ? op.through->offset - first : s.rows;
    const size_t from = size_t(op.operands[i]), to = size_t(op.result);
    copy_rows(f.reals[from], first, count, s.columns, f.reals[to], at);
    copy_rows(f.integers[from], first, count, s.columns, f.integers[to], at);
    at += count;
  }
}

template <class T>
void run_greatest(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0);
  for (int64_t r = 0; r < x.count; ++r)
    f.ids_out(op)[r][0] = int32_t(std::max_element(x[r], x[r] + x.stride) - x[r]);  // the first of equals
}

LANE_RUN_FOR_BOTH(run_row_lookup)
LANE_RUN_FOR_BOTH(run_elementwise)
LANE_RUN_FOR_BOTH(run_map)
LANE_RUN_FOR_BOTH(run_gate)
LANE_RUN_FOR_BOTH(run_norm)
LANE_RUN_FOR_BOTH(run_head_slice)
LANE_RUN_FOR_BOTH(run_join)
LANE_RUN_FOR_BOTH(run_rows)
LANE_RUN_FOR_BOTH(run_greatest)

}  // namespace lane::reference
