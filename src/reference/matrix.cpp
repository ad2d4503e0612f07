#include "matrix.h"

#include "fast_rows.h"

namespace lane::reference {

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
float dot(const float* a, const float* b, int64_t n) { return dot_floats(a, b, size_t(n)); }

template <>
void decode_row<double>(const Matrix& m, int64_t row, double* out) {
  m.format->decode(m.row(row), size_t(m.columns), out);
}

template <>
void decode_row<float>(const Matrix& m, int64_t row, float* out) {
  decode_floats(*m.format, m.row(row), size_t(m.columns), out);
}

template <class T>
void multiply(ThreadPool& pool, const Matrix& m, int64_t rows, Rows<const T> x, Rows<T> y) {
  pool.for_each_piece(rows, [&](int64_t begin, int64_t end) {
    std::vector<T> weights(size_t(m.columns));
    for (int64_t i = begin; i < end; ++i) {
      decode_row(m, i, weights.data());
      for (int64_t t = 0; t < x.count; ++t) y[t][i] = dot(weights.data(), x[t], m.columns);
    }
  });
}

template void multiply(ThreadPool&, const Matrix&, int64_t, Rows<const double>, Rows<double>);
template void multiply(ThreadPool&, const Matrix&, int64_t, Rows<const float>, Rows<float>);

}  // namespace lane::reference
