// Ops of a sequence: positions and caches.
#include <fmt/format.h>

#include <algorithm>

#include "7_plan/lower.h"

namespace lane {
namespace {

constexpr int64_t kAttentionThreads = 128, kAttentionTile = 128;  // the tile as ops/attention.cuh says

}  // namespace

CacheType cache_type(const Lowering& to, const Ref& state) {
  const std::string& type = to.step().states[size_t(state.index)].type;
  if (type == "f16") return {"F16Cache", 1};
  if (type == "q8_0") return {"Q8Cache", 32};
  return {"F32Cache", 1};
}

void lower_rotation(Lowering& to, const StepOp& op) {
  const Ref &x = op.operands[0], &pos = op.operands[1], &table = op.operands[2];
  const int64_t count = x.shape.elements();
  to.launch_elements(
      op, "rotation", count,
      {to.out(op.result), to.in(x), to.in(table), to.in(pos), count, x.shape.columns, to.rows_per_sequence(x),
       op.integer(OptionKey::Width), op.integer(OptionKey::Turned), op.integer(OptionKey::Paired)});
}

void lower_position_scale(Lowering& to, const StepOp& op) {
  const Ref &x = op.operands[0], &pos = op.operands[1];
  const int64_t count = x.shape.elements();
  to.launch_elements(op, "position_scale", count,
                     {to.out(op.result), to.in(x), to.in(pos), count, x.shape.columns, to.rows_per_sequence(x),
                      op.option(OptionKey::Factor), op.integer(OptionKey::Length)});
}

void lower_write(Lowering& to, const StepOp& op) {
  const Ref &x = op.operands[1], &pos = op.operands[2];
  const CacheType cache = cache_type(to, op.result);
  const int64_t columns = x.shape.columns, count = x.shape.elements() / cache.elements;
  to.launch_elements(op, "cache_write", count,
                     {to.out(op.result), to.in(x), to.in(pos), to.slots(), to.state_stride(), count, columns,
                      to.rows_per_sequence(x)})
      .template_arguments = {cache.name};
}

void lower_attention(Lowering& to, const StepOp& op) {
  const Ref &q = op.operands[0], &keys = op.operands[1], &values = op.operands[2], &pos = op.operands[3];
  const int64_t heads = op.integer(OptionKey::Heads), groups = op.integer(OptionKey::Groups);
  const int64_t width = op.integer(OptionKey::Width), value_width = op.integer(OptionKey::ValueWidth, width);
  const CacheType cache = cache_type(to, keys);
  if (width % cache.elements != 0 || value_width % cache.elements != 0)
    to.refuse(op, "q8_0 cache", fmt::format("heads of {} and {} values are no multiples of 32", width, value_width));
  Launch& launch = to.launch(op, "attention", dim(heads, q.shape.rows), dim(kAttentionThreads),
                             {to.out(op.result), to.in(q), to.in(keys), to.in(values), to.in_or_null(op, 4), to.in(pos),
                              to.slots(), to.state_stride(), to.rows_per_sequence(q), heads, groups, width, value_width,
                              op.option(OptionKey::Scale), op.integer(OptionKey::Window), op.option(OptionKey::Limit)});
  launch.template_arguments = {cache.name};
  launch.shared_bytes = uint32_t((width + value_width + kAttentionTile) * int64_t(sizeof(float)));
  if (int64_t(launch.shared_bytes) > to.chip().shared_bytes)
    to.refuse(op, "width", fmt::format("heads of {} and {} values do not fit shared memory", width, value_width));
}

}  // namespace lane
