// All arrays of a step, and the functions that run its ops. Private to this library.
#pragma once
#include <cstdint>
#include <vector>

#include "matrix.h"

namespace lane::reference {

template <class T>
struct Frame {
  const StepGraph& graph;
  ThreadPool& pool;
  std::optional<KvType> kv;
  // By ValueId; those that a value has no use for are empty.
  std::vector<std::vector<T>> reals;  // computed, carried, and constants that are read as values
  std::vector<std::vector<int32_t>> integers;
  std::vector<Matrix> matrices;  // constants as they lie in memory

  const Shape& shape(const Op& op, size_t i) const { return graph.value(op.operands[i]).shape; }
  bool given(const Op& op, size_t i) const { return i < op.operands.size(); }
  Rows<const T> in(const Op& op, size_t i) const {
    const Shape& s = shape(op, i);
    return {reals[size_t(op.operands[i])].data(), s.experts * s.rows, s.columns};
  }
  Rows<const int32_t> ids(const Op& op, size_t i) const {
    return {integers[size_t(op.operands[i])].data(), shape(op, i).rows, shape(op, i).columns};
  }
  const Matrix& matrix(const Op& op, size_t i) const { return matrices[size_t(op.operands[i])]; }
  int64_t integer(const Op& op, size_t i) const { return integers[size_t(op.operands[i])][0]; }

  const Shape& result(const Op& op) const { return graph.value(op.result).shape; }
  Rows<T> out(const Op& op) {
    const Shape& s = result(op);
    return {reals[size_t(op.result)].data(), s.experts * s.rows, s.columns};
  }
  Rows<int32_t> ids_out(const Op& op) {
    return {integers[size_t(op.result)].data(), result(op).rows, result(op).columns};
  }
};

// Each runs the ops of one kind, or of a few that differ in one expression.
template <class T>
void run_row_lookup(Frame<T>& f, const Op& op);
template <class T>
void run_elementwise(Frame<T>& f, const Op& op);  // sum, product
template <class T>
void run_map(Frame<T>& f, const Op& op);  // one value from one
template <class T>
void run_gate(Frame<T>& f, const Op& op);
template <class T>
void run_norm(Frame<T>& f, const Op& op);  // rms, layer, length
template <class T>
void run_head_slice(Frame<T>& f, const Op& op);
template <class T>
void run_join(Frame<T>& f, const Op& op);  // join, head join
template <class T>
void run_rows(Frame<T>& f, const Op& op);  // row slice, rows
template <class T>
void run_greatest(Frame<T>& f, const Op& op);

template <class T>
void run_product(Frame<T>& f, const Op& op);  // matrix, head, expert

template <class T>
void run_rotation(Frame<T>& f, const Op& op);
template <class T>
void run_position_scale(Frame<T>& f, const Op& op);
template <class T>
void run_attention(Frame<T>& f, const Op& op);
template <class T>
void run_write(Frame<T>& f, const Op& op);

template <class T>
void run_top_choice(Frame<T>& f, const Op& op);
template <class T>
void run_chosen_share(Frame<T>& f, const Op& op);
template <class T>
void run_expert_bias(Frame<T>& f, const Op& op);
template <class T>
void run_expert_sum(Frame<T>& f, const Op& op);

template <class T>
void run_short_convolution(Frame<T>& f, const Op& op);
template <class T>
void run_shift(Frame<T>& f, const Op& op);
template <class T>
void run_decay(Frame<T>& f, const Op& op);
template <class T>
void run_delta_rule(Frame<T>& f, const Op& op);
template <class T>
void run_delta_reading(Frame<T>& f, const Op& op);

template <class T>
T silu(T x);
template <class T>
T gelu(T x);  // by tanh
template <class T>
T sigmoid(T x);
template <class T>
T softplus(T x);

// note [two instances]
// Every run_ file ends by instantiating its functions for double and for float.
#define LANE_RUN_FOR_BOTH(name)                  \
  template void name(Frame<double>&, const Op&); \
  template void name(Frame<float>&, const Op&);

}  // namespace lane::reference
