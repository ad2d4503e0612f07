// A constant's rows: decoded, and multiplied. Private to this library.
#pragma once
#include "lane/reference.h"
#include "thread_pool.h"

namespace lane::reference {

/// Rows of values, `stride` apart.
template <class T>
struct Rows {
  T* data;
  int64_t count;
  int64_t stride;
  T* operator[](int64_t row) const { return data + row * stride; }
};

/// `rows` rows of a constant, from one of them on.
struct Matrix {
  const Format* format;
  const std::byte* data;
  int64_t columns;
  const std::byte* row(int64_t r) const { return data + uint64_t(r) * format->row_bytes(uint64_t(columns)); }
  Matrix from_row(int64_t r) const { return {format, row(r), columns}; }
};

/// a · b: in order in double, in sums side by side in float.
double dot(const double* a, const double* b, int64_t n);
float dot(const float* a, const float* b, int64_t n);

template <class T>
void decode_row(const Matrix& m, int64_t row, T* out);

/// y[t][i] = row i of m · x[t], for i < rows and every t. Each product is summed in an order of its own type's
/// choosing, the same for every thread count.
template <class T>
void multiply(ThreadPool& pool, const Matrix& m, int64_t rows, Rows<const T> x, Rows<T> y);

}  // namespace lane::reference
