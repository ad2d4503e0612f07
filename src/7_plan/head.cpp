#include "lane/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lane/error.h"

namespace lane {
namespace {

template <class Kind>
bool touches_any(const Launch& launch) {
  return std::any_of(launch.args.begin(), launch.args.end(),
                     [](const Arg& arg) { return std::holds_alternative<Kind>(arg); });
}

/// The buffer of which a launch reads the last row; -1 where it reads none so.
int last_row_read(const Launch& launch, const Schedule& schedule) {
  for (const Arg& arg : launch.args) {
    const auto* a = std::get_if<BufferArg>(&arg);
    if (!a || a->access != Access::Read || a->byte_offset == 0) continue;
    const uint64_t bytes = schedule.buffers[size_t(a->buffer)].bytes, rows = uint64_t(schedule.rows_per_sequence);
    if (a->byte_offset * rows == bytes * (rows - 1)) return a->buffer;
  }
  return -1;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw InternalError("plan: the head of a chunk " + what);
}

/// Of what was made before it, the head reads one row of one array.
void verify(const Head& head, const Schedule& schedule) {
  bool makes_logits = false;
  std::set<int> made;
  for (int i = head.first; i < head.end; i++) {
    const Launch& launch = schedule.launches[size_t(i)];
    require(!touches_any<StateArg>(launch), "touches carried state");
    makes_logits |= touches_any<LogitsArg>(launch);
    for (const Arg& arg : launch.args) {
      const auto* a = std::get_if<BufferArg>(&arg);
      if (!a) continue;
      const bool row = a->buffer == head.buffer && a->access == Access::Read && a->byte_offset != 0;
      require(row || made.contains(a->buffer) || a->access == Access::Write,
              fmt::format("reads '{}', which is not its own", schedule.buffers[size_t(a->buffer)].name));
      if (!row) made.insert(a->buffer);
    }
  }
  require(makes_logits && !made.contains(head.buffer), "makes no logits of a row");
}

}  // namespace

std::optional<Head> head_of(const Schedule& schedule) {
  if (schedule.kind != FormKind::Prefill) return std::nullopt;
  Head head;
  const int launches = int(schedule.launches.size());
  const auto buffer = [&](int launch) { return last_row_read(schedule.launches[size_t(launch)], schedule); };
  while (head.first < launches && buffer(head.first) < 0) head.first++;
  if (head.first == launches) return std::nullopt;
  head.buffer = buffer(head.first);
  head.row_bytes = schedule.buffers[size_t(head.buffer)].bytes / uint64_t(schedule.rows_per_sequence);
  head.end = head.first;
  // The choice, and moving on to the next step, are no part of it.
  while (head.end < launches && !touches_any<IoArg>(schedule.launches[size_t(head.end)])) head.end++;
  verify(head, schedule);
  return head;
}

}  // namespace lane
