// Ops that know positions: rotation, position scale, the cache and attention over it. Row r of a block stands at pos +
// r.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frame.h"
#include "lane/error.h"
#include "lane/weights.h"

namespace lane::reference {
namespace {

/// Turns pair (a, b) of values by an angle.
template <class T>
void turn(T& a, T& b, double angle, double magnitude) {
  const double c = magnitude * std::cos(angle), s = magnitude * std::sin(angle);
  const double x = a, y = b;
  a = T(x * c - y * s);
  b = T(x * s + y * c);
}

}  // namespace

template <class T>
void run_rotation(Frame<T>& f, const Op& op) {
  std::vector<double> factors;
  if (f.given(op, 2)) factors.assign(f.in(op, 2).data, f.in(op, 2).data + f.shape(op, 2).elements());
  const std::vector<double> frequency = rotary_frequencies(op, factors);
  const double magnitude = op.option(OptionKey::Magnitude, 1);
  const int64_t width = op.integer(OptionKey::Width), pairs = int64_t(frequency.size()), pos = f.integer(op, 1);
  const bool neighbours = op.integer(OptionKey::Paired) == 1;
  const Rows<const T> x = f.in(op, 0);
  const Rows<T> y = f.out(op);
  std::copy_n(x.data, x.count * x.stride, y.data);
  for (int64_t r = 0; r < y.count; ++r)
    for (T* head = y[r]; head < y[r] + y.stride; head += width)
      for (int64_t i = 0; i < pairs; ++i)
        turn(head[neighbours ? 2 * i : i], head[neighbours ? 2 * i + 1 : i + pairs],
             double(pos + r) * frequency[size_t(i)], magnitude);
}

template <class T>
void run_position_scale(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 0);
  const Rows<T> y = f.out(op);
  for (int64_t r = 0; r < y.count; ++r) {
    const double lengths = std::floor(double(f.integer(op, 1) + r) / op.option(OptionKey::Length));
    const T scale = T(1 + op.option(OptionKey::Factor) * std::log1p(lengths));
    for (int64_t c = 0; c < y.stride; ++c) y[r][c] = scale * x[r][c];
  }
}

namespace {

/// Q8_0 as kernels/ops/cache.cuh stores it: 32 values as bytes of one half-precision scale.
template <class T>
void store_q8_0(const T* x, T* to) {
  constexpr int64_t kBlock = 32;
  float most = 0;
  for (int64_t i = 0; i < kBlock; ++i) most = std::max(most, std::abs(float(x[i])));
  const float scale = most / 127.0f, inverse = scale > 0 ? 1.0f / scale : 0.0f;
  for (int64_t i = 0; i < kBlock; ++i) to[i] = T(float(_Float16(scale)) * std::rint(float(x[i]) * inverse));
}

/// A row as the cache holds it.
template <class T>
void store(const T* x, int64_t columns, std::optional<KvType> kv, T* to) {
  if (kv == KvType::Q8_0) {
    for (int64_t i = 0; i < columns; i += 32) store_q8_0(x + i, to + i);
    return;
  }
  for (int64_t i = 0; i < columns; ++i) to[i] = !kv ? x[i] : *kv == KvType::F16 ? T(_Float16(x[i])) : T(float(x[i]));
}

/// One query against the cache's rows `first` to `last`.
template <class T>
struct Query {
  const Op& op;
  const T* q;
  Rows<const T> keys, values;  // of this query's group
  int64_t first, last;
  const T* sink;  // this head's, or null

  double score(int64_t row) const {
    const double scaled = op.option(OptionKey::Scale) * dot(q, keys[row], op.integer(OptionKey::Width));
    const double limit = op.option(OptionKey::Limit);
    return limit > 0 ? limit * std::tanh(scaled / limit) : scaled;
  }

  /// softmax(scores) · values; a sink is one more score, of no value.
  void read(int64_t value_width, std::vector<double>& scores, T* out) const {
    scores.clear();
    for (int64_t row = first; row <= last; ++row) scores.push_back(score(row));
    double greatest = *std::max_element(scores.begin(), scores.end());
    if (sink) greatest = std::max(greatest, double(*sink));
    double sum = sink ? std::exp(double(*sink) - greatest) : 0;
    for (double& s : scores) sum += s = std::exp(s - greatest);
    std::fill_n(out, value_width, T(0));
    for (int64_t row = first; row <= last; ++row) {
      const T share = T(scores[size_t(row - first)] / sum);
      for (int64_t i = 0; i < value_width; ++i) out[i] += share * values[row][i];
    }
  }
};

void check_position(const StepGraph& graph, const Op& op, int64_t pos, int64_t rows, int64_t capacity) {
  if (pos < 0 || pos + rows > capacity)
    throw UsageError("positions " + std::to_string(pos) + " to " + std::to_string(pos + rows - 1) + " in the " +
                     std::string(op_name(op.kind)) + " of '" + graph.value(op.result).name + "', whose cache has " +
                     std::to_string(capacity) + " rows");
}

}  // namespace

template <class T>
void run_write(Frame<T>& f, const Op& op) {
  const Rows<const T> x = f.in(op, 1);
  const Rows<T> cache = f.out(op);
  const int64_t base = op.from->base == kNoValue ? 0 : f.integers[size_t(op.from->base)][0];
  const int64_t first = base + op.from->offset - 1;
  check_position(f.graph, op, first, x.count, cache.count);
  if (f.kv == KvType::Q8_0 && x.stride % 32 != 0)
    throw NoKernelError("write", "q8_0 cache", f.graph.value(op.result).name,
                        fmt::format("a cache row of {} values is no multiple of 32", x.stride));
  for (int64_t r = 0; r < x.count; ++r) store(x[r], x.stride, f.kv, cache[first + r]);
}

template <class T>
void run_attention(Frame<T>& f, const Op& op) {
  const Rows<const T> q = f.in(op, 0), keys = f.in(op, 1), values = f.in(op, 2);
  const Rows<T> y = f.out(op);
  const int64_t heads = op.integer(OptionKey::Heads), share = heads / op.integer(OptionKey::Groups);
  const int64_t width = op.integer(OptionKey::Width), value_width = op.integer(OptionKey::ValueWidth, width);
  const int64_t pos = f.integer(op, 3), window = op.integer(OptionKey::Window, keys.count);
  check_position(f.graph, op, pos, q.count, keys.count);
  f.pool.for_each_piece(q.count * heads, [&](int64_t begin, int64_t end) {
    std::vector<double> scores;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / heads, h = i % heads, group = h / share, last = pos + r;
      const Query<T> query{op,
                           q[r] + h * width,
                           {keys.data + group * width, keys.count, keys.stride},
                           {values.data + group * value_width, values.count, values.stride},
                           std::max<int64_t>(0, last - window + 1),
                           last,
                           f.given(op, 4) ? f.in(op, 4).data + h : nullptr};
      query.read(value_width, scores, y[r] + h * value_width);
    }
  });
}

LANE_RUN_FOR_BOTH(run_rotation)
LANE_RUN_FOR_BOTH(run_position_scale)
LANE_RUN_FOR_BOTH(run_write)
LANE_RUN_FOR_BOTH(run_attention)

}  // namespace lane::reference
