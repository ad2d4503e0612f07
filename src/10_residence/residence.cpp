#include "lane/residence.h"

#include <fmt/format.h>

#include <algorithm>

#include "lane/error.h"

namespace lane {
namespace {

uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Largest first, so that few move; of equal ones the last used first, so that its copy has the whole step to arrive.
std::vector<int> leaving_order(const Weights& weights) {
  std::vector<int> order;
  for (size_t p = weights.placements.size(); p-- > 0;) {
    if (weights.placements[p].is_matrix()) order.push_back(int(p));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return weights.placements[size_t(a)].device_bytes > weights.placements[size_t(b)].device_bytes;
  });
  return order;
}

uint64_t budget_of(const Options& options, const Chip& chip) {
  const uint64_t memory = uint64_t(options.mem_bytes > 0 ? options.mem_bytes : chip.memory_bytes);
  const uint64_t reserve = chip.capability == 0 ? 0 : kContextReserve;
  return memory - std::min(memory, reserve);
}

/// One line an item: what to make smaller.
std::string items(const Residence& r) {
  return fmt::format("weights {}, carried state {}, arena {}, logits {}, inputs {}", r.weight_bytes, r.state_bytes,
                     r.arena_bytes, r.logits_bytes, r.io_bytes);
}

}  // namespace

Residence reside(const std::vector<const Schedule*>& schedules, const std::vector<const Arena*>& arenas,
                 const Weights& weights, const Options& options, const Chip& chip) {
  Residence r;
  for (const Placement& p : weights.placements) {
    r.weight_offset.push_back(r.weight_bytes);
    r.weight_bytes += aligned(p.device_bytes);
    if (!p.is_matrix()) r.fixed_weight_bytes += aligned(p.device_bytes);
  }
  int64_t sequences = 1, tokens = 1;
  for (const Schedule* s : schedules) {
    sequences = std::max(sequences, s->sequences);
    tokens = std::max(tokens, s->sequences * s->rows_per_sequence);
    r.logits_bytes = std::max(r.logits_bytes, aligned(uint64_t(s->logit_rows) * uint64_t(s->vocabulary) * 4));
    r.state_bytes = std::max(r.state_bytes, s->state_stride);
  }
  r.state_bytes *= uint64_t(sequences);
  for (const Arena* a : arenas) r.arena_bytes = std::max(r.arena_bytes, a->bytes);
  r.io_bytes = aligned(uint64_t(tokens) * 4) + 3 * aligned(uint64_t(sequences) * 4);
  r.leaving = leaving_order(weights);
  const uint64_t budget = budget_of(options, chip);
  if (r.needed() > budget) throw MemoryError(r.needed(), budget, items(r));
  return r;
}

void verify(const Residence& residence, const Weights& weights) {
  const size_t n = weights.placements.size();
  if (residence.weight_offset.size() != n) {
    throw InternalError(fmt::format("residence: {} offsets for {} placements", residence.weight_offset.size(), n));
  }
  uint64_t end = 0;
  for (size_t p = 0; p < n; ++p) {
    const uint64_t at = residence.weight_offset[p];
    if (at % 256 != 0 || at < end) {
      throw InternalError(fmt::format("residence: '{}' at {}, after {}", weights.placements[p].name, at, end));
    }
    end = at + weights.placements[p].device_bytes;
  }
  if (end > residence.weight_bytes) throw InternalError("residence: placements end past the weights' allocation");
  std::vector<int> leaving = residence.leaving, matrices;
  for (size_t p = 0; p < n; ++p) {
    if (weights.placements[p].is_matrix()) matrices.push_back(int(p));
  }
  std::sort(leaving.begin(), leaving.end());
  if (leaving != matrices) throw InternalError("residence: the order of leaving is not each matrix once");
}

std::string to_text(const Residence& residence, const Weights& weights) {
  std::string text =
      fmt::format("weights {} (of them fixed {})\ncarried state {}\narena {}\nlogits {}\ninputs {}\nneeded {}\n",
                  residence.weight_bytes, residence.fixed_weight_bytes, residence.state_bytes, residence.arena_bytes,
                  residence.logits_bytes, residence.io_bytes, residence.needed());
  for (size_t p = 0; p < weights.placements.size(); ++p) {
    text += fmt::format("{:12} {:12} {}\n", residence.weight_offset[p], weights.placements[p].device_bytes,
                        weights.placements[p].name);
  }
  text += "leaving";
  for (int p : residence.leaving) text += ' ' + weights.placements[size_t(p)].name;
  return text + '\n';
}

}  // namespace lane
