// Shape rules of routing and experts.
#include <fmt/format.h>

#include "check.h"

namespace lane::graph {
namespace {

Shape step(int64_t rows, int64_t columns) { return {1, rows, columns}; }

Result top_choice(const Checked& c) {
  const int64_t experts = c.shape(0).columns, count = c.op.integer(OptionKey::Count);
  const int64_t groups = c.op.integer(OptionKey::Groups, 1), kept = c.op.integer(OptionKey::Kept, 1);
  if (c.op.has(OptionKey::Groups) != c.op.has(OptionKey::Kept)) c.refuse("options 'groups' and 'kept' go together");
  if (experts % groups != 0 || kept > groups)
    c.refuse(fmt::format("{} of {} groups of {} experts; accepted is a divisor of the experts and at most all groups",
                         kept, groups, experts));
  if (count > experts / groups * kept) c.refuse(fmt::format("count {} of {} experts", count, experts / groups * kept));
  if (c.given(1)) c.elements(1, experts);
  return {step(c.shape(0).rows, count), true};
}

Result chosen_share(const Checked& c) {
  c.rows(1, c.shape(0).rows);
  return {step(c.shape(0).rows, c.shape(1).columns)};
}

/// x is one row for all chosen experts, or a block for each.
Result expert_product(const Checked& c) {
  const Shape &w = c.shape(0), &x = c.shape(1), &e = c.shape(2);
  if (x.columns != w.columns && x.columns != e.columns * w.columns)
    c.mismatch(1, fmt::format("{} or {} columns", w.columns, e.columns * w.columns));
  c.rows(2, x.rows);
  return {step(x.rows, e.columns * w.rows)};
}

/// A row of biases an expert.
Result expert_bias(const Checked& c) {
  const Shape &b = c.shape(0), &y = c.shape(1), &e = c.shape(2);
  if (b.experts != 1) c.mismatch(0, "one matrix");
  c.columns(1, e.columns * b.columns);
  c.rows(2, y.rows);
  return {y};
}

/// Blocks of d, a weight of s each.
Result expert_sum(const Checked& c) {
  const Shape &d = c.shape(0), &s = c.shape(1);
  c.columns_divide_by(0, s.columns);
  c.rows(1, d.rows);
  return {step(d.rows, d.columns / s.columns)};
}

}  // namespace

Result expert_result(const Checked& c) {
  switch (c.op.kind) {
    case OpKind::TopChoice:
      return top_choice(c);
    case OpKind::ChosenShare:
      return chosen_share(c);
    case OpKind::ExpertProduct:
      return expert_product(c);
    case OpKind::ExpertBias:
      return expert_bias(c);
    default:
      return expert_sum(c);
  }
}

}  // namespace lane::graph
