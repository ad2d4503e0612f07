// Matrix products: of one matrix, of a matrix a head, of a matrix an expert.
#include "frame.h"
#include "lane/error.h"

namespace lane::reference {
namespace {

template <class T>
void matrix_product(Frame<T>& f, const Op& op) {
  multiply(f.pool, f.matrix(op, 0), f.shape(op, 0).rows, f.in(op, 1), f.out(op));
}

/// Head h of y is matrix h times head h of x.
template <class T>
void head_product(Frame<T>& f, const Op& op) {
  const Shape& w = f.shape(op, 0);
  const Rows<const T> x = f.in(op, 1);
  const Rows<T> y = f.out(op);
  for (int64_t h = 0; h < w.experts; ++h)
    multiply(f.pool, f.matrix(op, 0).from_row(h * w.rows), w.rows,
             Rows<const T>{x.data + h * w.columns, x.count, x.stride}, Rows<T>{y.data + h * w.rows, y.count, y.stride});
}

/// Block j of y is the j-th chosen expert's matrix times x, or times block j of x.
template <class T>
void expert_product(Frame<T>& f, const Op& op) {
  const Shape& w = f.shape(op, 0);
  const Rows<const T> x = f.in(op, 1);
  const Rows<const int32_t> chosen = f.ids(op, 2);
  const Rows<T> y = f.out(op);
  const bool blocks = x.stride != w.columns;
  for (int64_t r = 0; r < y.count; ++r)
    for (int64_t j = 0; j < chosen.stride; ++j)
      multiply(f.pool, f.matrix(op, 0).from_row(chosen[r][j] * w.rows), w.rows,
               Rows<const T>{x[r] + (blocks ? j * w.columns : 0), 1, w.columns}, Rows<T>{y[r] + j * w.rows, 1, w.rows});
}

}  // namespace

template <class T>
void run_product(Frame<T>& f, const Op& op) {
  switch (op.kind) {
    case OpKind::MatrixProduct:
      return matrix_product(f, op);
    case OpKind::HeadProduct:
      return head_product(f, op);
    case OpKind::ExpertProduct:
      return expert_product(f, op);
    default:
      throw InternalError("an op that is no product");
  }
}

LANE_RUN_FOR_BOTH(run_product)

}  // namespace lane::reference
