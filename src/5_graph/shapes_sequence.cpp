// Shape rules of the ops along one sequence: rotation, attention, cache writes, recurrences.
#include <fmt/format.h>

#include "check.h"

namespace lane::graph {
namespace {

Shape step(int64_t rows, int64_t columns) { return {1, rows, columns}; }

void heads_in_groups(const Checked& c, int64_t heads, int64_t groups) {
  if (heads % groups != 0)
    c.refuse(fmt::format("{} heads in {} groups; accepted is a divisor of the heads", heads, groups));
}

void rotary_scaling(const Checked& c) {
  const bool yarn = c.op.has(OptionKey::Yarn);
  if (yarn && !c.op.has(OptionKey::Original)) c.refuse("yarn needs the option 'original'");
  if (yarn && c.op.has(OptionKey::Linear)) c.refuse("scales by yarn or linearly, not both");
  if (yarn && c.op.option(OptionKey::Base) <= 1) c.refuse("yarn needs a base above 1");
  for (OptionKey key : {OptionKey::Original, OptionKey::Fast, OptionKey::Slow})
    if (c.op.has(key) && !yarn) c.refuse(fmt::format("option '{}' goes with 'yarn'", option_name(key)));
}

Result rotation(const Checked& c) {
  const int64_t width = c.op.integer(OptionKey::Width), turned = c.op.integer(OptionKey::Turned);
  if (turned % 2 != 0 || turned > width)
    c.refuse(fmt::format("turned {} of width {}; accepted is an even number up to the width", turned, width));
  rotary_scaling(c);
  c.columns_divide_by(0, width);
  if (c.given(2)) c.elements(2, turned / 2);
  return {c.shape(0)};
}

Result attention(const Checked& c) {
  const int64_t heads = c.op.integer(OptionKey::Heads), groups = c.op.integer(OptionKey::Groups);
  const int64_t width = c.op.integer(OptionKey::Width), value_width = c.op.integer(OptionKey::ValueWidth, width);
  heads_in_groups(c, heads, groups);
  c.columns(0, heads * width);
  c.columns(1, groups * width);
  c.columns(2, groups * value_width);
  c.rows(2, c.shape(1).rows);
  if (c.shape(0).rows > c.shape(1).rows) c.mismatch(0, fmt::format("at most {} rows", c.shape(1).rows));
  if (c.given(4)) c.elements(4, heads);
  return {step(c.shape(0).rows, heads * value_width)};
}

/// A ring of L - 1 rows, L taps a channel.
Result short_convolution(const Checked& c) {
  const Shape& ring = c.shape(0);
  c.columns(1, ring.columns);
  const Shape taps = step(ring.columns, ring.rows + 1);
  if (c.shape(2) != taps) c.mismatch(2, to_text(taps));
  return {c.shape(1)};
}

Result shift(const Checked& c) {
  c.columns(1, c.shape(0).columns);
  return {c.shape(0)};
}

Result decay(const Checked& c) {
  c.elements(1, c.shape(0).columns);
  c.elements(2, c.shape(0).columns);
  return {c.shape(0)};
}

/// M, q where it is a reading, k, v, d, b: a memory of `width` by `width` a head.
Result delta(const Checked& c) {
  const int64_t heads = c.op.integer(OptionKey::Heads), groups = c.op.integer(OptionKey::Groups);
  const int64_t width = c.op.integer(OptionKey::Width);
  heads_in_groups(c, heads, groups);
  c.columns(0, width);
  if (c.shape(0).experts * c.shape(0).rows != heads * width) c.mismatch(0, fmt::format("{} rows", heads * width));
  const bool reads = c.op.kind == OpKind::DeltaReading;
  const size_t k = reads ? 2 : 1;
  for (size_t i = 1; c.given(i); ++i) c.rows(i, c.shape(1).rows);
  if (reads) c.columns(1, groups * width);
  c.columns(k, groups * width);
  c.columns(k + 1, heads * width);
  c.columns(k + 2, heads);
  c.columns(k + 3, heads);
  return {reads ? step(c.shape(1).rows, heads * width) : c.shape(0)};
}

/// Where the rows begin: at a position, which counts from zero, or at an integer, which counts from one.
void write_place(const Checked& c, const Place& from, const Place& through) {
  if (from.base != through.base) c.refuse("the two ends of its range count from different names");
  if (from.offset < 1 || from.offset > through.offset)
    c.refuse(fmt::format("items {} through {} are no rows", from.offset, through.offset));
  if (from.base == kNoValue) {
    if (through.offset > c.shape(0).rows) c.mismatch(0, fmt::format("{} rows", through.offset));
    return;
  }
  const Value& base = c.graph.value(from.base);
  if (base.kind != ValueKind::Input || base.shape.columns != 1)
    c.refuse(fmt::format("'{}' should be an Input of one integer", base.name));
  if (from.offset != 1) c.refuse("positions start at zero: the row of one is 'item (pos + 1) of …'");
}

Result write(const Checked& c) {
  if (!c.op.from || !c.op.through) c.refuse("writes no rows");
  write_place(c, *c.op.from, *c.op.through);
  if (c.shape(0).experts != 1) c.mismatch(0, "one matrix");
  c.columns(1, c.shape(0).columns);
  c.rows(1, c.op.through->offset - c.op.from->offset + 1);
  if (c.shape(1).rows > c.shape(0).rows) c.mismatch(1, fmt::format("at most {} rows", c.shape(0).rows));
  return {c.shape(0)};
}

}  // namespace

Result sequence_result(const Checked& c) {
  switch (c.op.kind) {
    case OpKind::Rotation:
      return rotation(c);
    case OpKind::Attention:
      return attention(c);
    case OpKind::ShortConvolution:
      return short_convolution(c);
    case OpKind::Shift:
      return shift(c);
    case OpKind::Decay:
      return decay(c);
    case OpKind::DeltaRule:
    case OpKind::DeltaReading:
      return delta(c);
    case OpKind::Write:
      return write(c);
    default:
      return {c.shape(0)};  // position scale
  }
}

}  // namespace lane::graph
