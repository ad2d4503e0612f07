#include "lane/residence.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lane/error.h"
#include "leaving.h"

namespace lane {
namespace {

uint64_t budget_of(const Options& options, const Chip& chip) {
  const uint64_t memory = uint64_t(options.mem_bytes > 0 ? options.mem_bytes : chip.memory_bytes);
  const uint64_t reserve = chip.capability == 0 ? 0 : kContextReserve;
  return memory - std::min(memory, reserve);
}

/// Fixed placements first: their addresses do not depend on what leaves.
void place_weights(Residence& r, const Weights& weights) {
  r.weight_offset.resize(weights.placements.size());
  for (const bool matrices : {false, true}) {
    for (size_t p = 0; p < weights.placements.size(); ++p) {
      const Placement& placement = weights.placements[p];
      if (placement.is_matrix() != matrices) continue;
      r.weight_offset[p] = r.weight_bytes;
      r.weight_bytes += aligned(placement.device_bytes);
    }
    if (!matrices) r.fixed_weight_bytes = r.weight_bytes;
  }
}

void add_step_bytes(Residence& r, const std::vector<const Schedule*>& schedules,
                    const std::vector<const Arena*>& arenas) {
  int64_t sequences = 1, tokens = 1;
  for (const Schedule* s : schedules) {
    sequences = std::max(sequences, s->sequences);
    tokens = std::max(tokens, s->sequences * s->rows_per_sequence);
    r.logits_bytes = std::max(r.logits_bytes, aligned(uint64_t(s->logit_rows) * uint64_t(s->vocabulary) * 4));
    r.state_bytes = std::max(r.state_bytes, s->state_stride);
  }
  r.state_bytes *= uint64_t(sequences);
  for (const Arena* a : arenas) r.arena_bytes = std::max(r.arena_bytes, a->bytes);
  r.io_bytes = aligned(uint64_t(tokens) * 4) + 5 * aligned(uint64_t(sequences) * 4);
}

/// What to make smaller.
std::string items(const Residence& r, size_t away) {
  const uint64_t buffers = away == 0 ? 0 : 2 * r.leaving[away - 1].buffer_bytes;
  return fmt::format("weights {}, copy buffers {}, carried state {}, arena {}, logits {}, inputs {}",
                     r.weights_with(away) - buffers, buffers, r.state_bytes, r.arena_bytes, r.logits_bytes, r.io_bytes);
}

/// The fewest that leave. More away is not always less needed: the first ones bring the buffers with them.
void choose_left(Residence& r) {
  size_t least = 0;
  for (r.left = 0; r.left <= r.leaving.size(); ++r.left) {
    if (r.needed() <= r.budget) return;
    if (r.needed() < r.needed_with(least)) least = r.left;
  }
  throw MemoryError(r.needed_with(least), r.budget, items(r, least));
}

uint64_t bytes_away(const Residence& r, Away away) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < r.left; ++i) {
    const Leaving& set = r.leaving[i];
    if (set.away == away) bytes += set.bytes;
    if (!set.first && away == Away::Copied) bytes -= set.bytes;
  }
  return bytes;
}

void verify_offsets(const Residence& r, const Weights& weights) {
  const size_t n = weights.placements.size();
  if (r.weight_offset.size() != n) {
    throw InternalError(fmt::format("residence: {} offsets for {} placements", r.weight_offset.size(), n));
  }
  uint64_t end = 0;
  for (const bool matrices : {false, true}) {
    for (size_t p = 0; p < n; ++p) {
      const Placement& placement = weights.placements[p];
      if (placement.is_matrix() != matrices) continue;
      const uint64_t at = r.weight_offset[p];
      if (at % 256 != 0 || at < end) {
        throw InternalError(fmt::format("residence: '{}' at {}, after {}", placement.name, at, end));
      }
      end = at + placement.device_bytes;
    }
    if (!matrices && end > r.fixed_weight_bytes) throw InternalError("residence: fixed placements end past their part");
  }
  if (end > r.weight_bytes) throw InternalError("residence: placements end past the weights' allocation");
}

/// Each matrix leaves once; and after each that leaves, what stays and the buffers fit the weights' bytes.
void verify_leaving(const Residence& r, const Weights& weights) {
  std::vector<int> leaving, matrices;
  std::multiset<uint64_t> copied;
  uint64_t staying = r.weight_bytes;
  for (const Leaving& set : r.leaving) {
    uint64_t bytes = 0;
    for (const int p : set.matrices) bytes += aligned(weights.placements.at(size_t(p)).device_bytes);
    if (set.first) leaving.insert(leaving.end(), set.matrices.begin(), set.matrices.end());
    if (set.first) staying -= bytes;
    if (set.away == Away::Copied) copied.insert(bytes);
    if (!set.first && copied.contains(bytes)) copied.erase(copied.find(bytes));
    const uint64_t buffer = copied.empty() ? 0 : *copied.rbegin();
    if (set.bytes != bytes || set.buffer_bytes < buffer || set.weight_bytes < staying + 2 * set.buffer_bytes) {
      throw InternalError(fmt::format("residence: {} bytes do not hold what stays", set.weight_bytes));
    }
  }
  for (size_t p = 0; p < weights.placements.size(); ++p) {
    if (weights.placements[p].is_matrix()) matrices.push_back(int(p));
  }
  std::ranges::sort(leaving);
  if (leaving != matrices) throw InternalError("residence: the order of leaving is not each matrix once");
}

}  // namespace

Residence reside(const std::vector<const Schedule*>& schedules, const std::vector<const Arena*>& arenas,
                 const Weights& weights, const Options& options, const Chip& chip) {
  Residence r;
  place_weights(r, weights);
  add_step_bytes(r, schedules, arenas);
  r.leaving = leaving_order(schedules, weights, r.weight_bytes);
  for (const Leaving& set : r.leaving) r.step_bytes += set.gathered || !set.first ? 0 : set.bytes;
  r.budget = budget_of(options, chip);
  choose_left(r);
  return r;
}

void check_state_bytes(const Schedule& step, int64_t sequences, const Options& options, const Chip& chip) {
  const uint64_t needed = step.state_stride * uint64_t(sequences), budget = budget_of(options, chip);
  if (needed > budget) throw MemoryError(needed, budget, fmt::format("carried state {}", needed));
}

void verify(const Residence& residence, const Weights& weights) {
  verify_offsets(residence, weights);
  verify_leaving(residence, weights);
  if (residence.left > residence.leaving.size() || residence.needed() > residence.budget) {
    throw InternalError(fmt::format("residence: {} bytes in {}", residence.needed(), residence.budget));
  }
}

std::string to_text(const Residence& r, const Weights& weights) {
  const uint64_t buffer = r.left == 0 ? 0 : r.leaving[r.left - 1].buffer_bytes;
  std::string text = fmt::format(
      "weights {} (of them fixed {})\nin host memory {} copied ahead, {} read there\ncopy buffers 2 x {}\n"
      "carried state {}\narena {}\nlogits {}\ninputs {}\nneeded {}\nbudget {}\n"
      "read by a step {}\n",
      r.weights_with(r.left) - 2 * buffer, r.fixed_weight_bytes, bytes_away(r, Away::Copied), bytes_away(r, Away::Read),
      buffer, r.state_bytes, r.arena_bytes, r.logits_bytes, r.io_bytes, r.needed(), r.budget, r.step_bytes);
  for (size_t p = 0; p < weights.placements.size(); ++p) {
    text += fmt::format("{:12} {:12} {}\n", r.weight_offset[p], weights.placements[p].device_bytes,
                        weights.placements[p].name);
  }
  text += "leaving, in order; with each away, bytes needed\n";
  for (size_t i = 0; i < r.leaving.size(); ++i) {
    text += fmt::format("{:12} {}{}", r.needed_with(i + 1), r.leaving[i].away == Away::Read ? "read there" : "copied",
                        i < r.left ? ", away" : "");
    for (const int p : r.leaving[i].matrices) text += ' ' + weights.placements[size_t(p)].name;
    text += '\n';
  }
  return text;
}

}  // namespace lane
