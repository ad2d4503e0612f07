// What a program refuses while it loads, refused before the interpreter computes anything.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "lane/weights.h"
#include "matrix.h"

namespace lane {
namespace {

using namespace reference;

/// Of a row that is not finite in float: the first weight that is none exactly either; m.columns where all are sound.
int64_t first_bad(const Matrix& m, int64_t row) {
  std::vector<double> exact(size_t(m.columns));
  decode_row(m, row, exact.data());
  return std::ranges::find_if_not(exact, [](double w) { return std::isfinite(w); }) - exact.begin();
}

/// The lowest index of a weight that is not finite; -1 where there is none.
int64_t first_bad(ThreadPool& pool, const Matrix& m, int64_t rows) {
  std::atomic<int64_t> lowest = rows * m.columns;
  pool.for_each_piece(rows, [&](int64_t begin, int64_t end) {
    std::vector<float> weights(size_t(m.columns));
    for (int64_t row = begin; row < end && row * m.columns < lowest; ++row) {
      decode_row(m, row, weights.data());
      if (std::ranges::all_of(weights, [](float w) { return std::isfinite(w); })) continue;
      const int64_t column = first_bad(m, row);
      if (column == m.columns) continue;
      int64_t before = lowest, at = row * m.columns + column;
      while (at < before && !lowest.compare_exchange_weak(before, at)) {
      }
    }
  });
  return lowest == rows * m.columns ? -1 : int64_t(lowest);
}

void check_tensor(ThreadPool& pool, const Checkpoint& checkpoint, const TensorInfo& tensor) {
  const Matrix all{tensor.format, checkpoint.data(tensor).data(), int64_t(tensor.columns())};
  const int64_t bad = first_bad(pool, all, int64_t(tensor.bytes / tensor.format->row_bytes(tensor.columns())));
  if (bad < 0) return;
  std::vector<double> row(tensor.columns());
  decode_row(all, bad / all.columns, row.data());
  refuse_value(checkpoint, tensor, uint64_t(bad), row[size_t(bad % all.columns)], "finite scales and weights");
}

}  // namespace

void check_weights(const StepGraph& graph, const Checkpoint& checkpoint) {
  ThreadPool pool(0);
  const auto tensor_of = [&](const Value& v) { return bind_constant(checkpoint, v.name); };
  for (const Op& op : graph.ops)
    if (op.kind == OpKind::Rotation && op.operands.size() > 2)
      if (const TensorInfo* factors = tensor_of(graph.value(op.operands[2]))) rotary_factors(checkpoint, *factors);
  for (const Value& v : graph.values)
    if (v.kind == ValueKind::Constant || v.kind == ValueKind::Quantized)
      if (const TensorInfo* tensor = tensor_of(v)) check_tensor(pool, checkpoint, *tensor);
}

}  // namespace lane
