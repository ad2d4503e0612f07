// Shape rules of the row-wise ops: lookups, norms, products, gates, slices.
#include <fmt/format.h>

#include <algorithm>

#include "check.h"

namespace lane::graph {
namespace {

Shape step(int64_t rows, int64_t columns) { return {1, rows, columns}; }

/// `item (toks + 1) of W`: a row for each integer. `items (pos + 1) through (pos + R) of W`: the rows of R positions.
Result lookup(const Checked& c) {
  const Shape &w = c.shape(0), &ids = c.shape(1);
  if (w.experts != 1) c.mismatch(0, "one matrix");
  if (!c.op.from || !c.op.through || c.op.from->base != c.op.operands[1] || c.op.through->base != c.op.operands[1])
    c.refuse("its place does not count from its Input");
  if (c.op.from->offset != 1) c.refuse("ids start at zero: a row is 'item (id + 1) of …'");
  const int64_t block = c.op.through->offset;
  if (block < 1 || block > w.rows) c.refuse(fmt::format("{} rows of a matrix of {}", block, w.rows));
  if (block > 1 && ids.columns != 1) c.refuse("a range counts from an Input of one integer");
  return {step(std::max(block, ids.columns), w.columns)};
}

/// y is as x, or one row for all rows; of a product also one value a row.
Result elementwise(const Checked& c) {
  const Shape &x = c.shape(0), &y = c.shape(1);
  const bool one_value = c.op.kind == OpKind::Product && y.columns == 1;
  if (y.columns != x.columns && !one_value) c.mismatch(1, fmt::format("{} columns", x.columns));
  if (y.experts != 1 || (y.rows != x.rows && y.rows != 1)) c.mismatch(1, fmt::format("{} rows or one", x.rows));
  return {x};
}

/// The weights are of one head, shared by all, or of the whole row.
Result norm(const Checked& c) {
  const Shape& x = c.shape(0);
  const int64_t width = c.op.integer(OptionKey::Width, x.columns);
  c.columns_divide_by(0, width);
  for (size_t i = 1; c.given(i); ++i) {
    const int64_t n = c.shape(i).elements();
    if (n != width && n != x.columns) c.mismatch(i, fmt::format("{} or {} values", width, x.columns));
  }
  return {x};
}

Result matrix_product(const Checked& c) {
  if (c.shape(0).experts != 1) c.mismatch(0, "one matrix");
  c.columns(1, c.shape(0).columns);
  return {step(c.shape(1).rows, c.shape(0).rows)};
}

Result head_product(const Checked& c) {
  const Shape& w = c.shape(0);
  const int64_t heads = c.op.integer(OptionKey::Heads);
  if (w.experts != heads) c.mismatch(0, fmt::format("{} experts", heads));
  c.columns(1, heads * w.columns);
  return {step(c.shape(1).rows, heads * w.rows)};
}

Result head_slice(const Checked& c) {
  const int64_t heads = c.op.integer(OptionKey::Heads), width = c.op.integer(OptionKey::Width);
  const int64_t from = c.op.integer(OptionKey::From), through = c.op.integer(OptionKey::Through);
  if (from > through || through > width)
    c.refuse(
        fmt::format("from {} through {} of width {}; accepted is 1 <= from <= through <= width", from, through, width));
  c.columns(0, heads * width);
  return {step(c.shape(0).rows, heads * (through - from + 1))};
}

Result join(const Checked& c) {
  c.rows(1, c.shape(0).rows);
  return {step(c.shape(0).rows, c.shape(0).columns + c.shape(1).columns)};
}

/// y has `width` values for each head, or `width` in all, which every head takes.
Result head_join(const Checked& c) {
  const int64_t heads = c.op.integer(OptionKey::Heads);
  c.rows(1, c.shape(0).rows);
  c.columns_divide_by(0, heads);
  if (!c.op.has(OptionKey::Width)) c.columns_divide_by(1, heads);
  const int64_t width = c.op.integer(OptionKey::Width, c.shape(1).columns / heads);
  if (c.shape(1).columns != width && c.shape(1).columns != heads * width)
    c.mismatch(1, fmt::format("{} or {} columns", width, heads * width));
  return {step(c.shape(0).rows, c.shape(0).columns + heads * width)};
}

Result row_slice(const Checked& c) {
  if (!c.op.from || !c.op.through || c.op.from->base != kNoValue || c.op.through->base != kNoValue)
    c.refuse("rows of a computed array are counted by integers");
  const int64_t from = c.op.from->offset, through = c.op.through->offset;
  if (from < 1 || from > through || through > c.shape(0).rows)
    c.refuse(
        fmt::format("items {} through {} of '{}', which has {} rows", from, through, c.in(0).name, c.shape(0).rows));
  return {step(through - from + 1, c.shape(0).columns), c.in(0).integers};
}

Result rows(const Checked& c) {
  int64_t total = 0;
  for (size_t i = 0; c.given(i); ++i) {
    c.columns(i, c.shape(0).columns);
    if (c.in(i).integers != c.in(0).integers) c.refuse("mixes integers and reals");
    total += c.shape(i).rows;
  }
  return {step(total, c.shape(0).columns), c.in(0).integers};
}

Result gate(const Checked& c) {
  if (c.shape(1) != c.shape(0)) c.mismatch(1, to_text(c.shape(0)));
  return {c.shape(0)};
}

}  // namespace

Result dense_result(const Checked& c) {
  switch (c.op.kind) {
    case OpKind::RowLookup:
      return lookup(c);
    case OpKind::Sum:
    case OpKind::Product:
      return elementwise(c);
    case OpKind::RmsNorm:
    case OpKind::LayerNorm:
    case OpKind::LengthNorm:
      return norm(c);
    case OpKind::MatrixProduct:
      return matrix_product(c);
    case OpKind::HeadProduct:
      return head_product(c);
    case OpKind::HeadSlice:
      return head_slice(c);
    case OpKind::Join:
      return join(c);
    case OpKind::HeadJoin:
      return head_join(c);
    case OpKind::RowSlice:
      return row_slice(c);
    case OpKind::Rows:
      return rows(c);
    case OpKind::SiluGate:
    case OpKind::GeluGate:
    case OpKind::SigmoidGate:
    case OpKind::ClampedGate:
      return gate(c);
    case OpKind::Greatest:
      return {step(c.shape(0).rows, 1), true};
    default:
      return {c.shape(0)};  // a value from each value
  }
}

}  // namespace lane::graph
