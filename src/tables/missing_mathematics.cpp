// Architectures that are known by name, and what keeps them from having rows.
#include <algorithm>
#include <iterator>

#include "lane/architectures.h"

namespace lane {
namespace {

struct Missing {
  std::string_view architecture, mathematics;
};

constexpr Missing kMissing[] = {
    {"bert", "attention that sees later tokens"},
    {"bitnet", "norms within the sublayers and a scale a tensor"},
    {"falcon-h1", "a Mamba-2 state space beside attention"},
    {"gemma3n", "per-layer embeddings, alternating updates of four streams and low-rank branches beside attention"},
    {"gemma4", "per-layer embeddings, caches that layers share and experts beside a dense feed-forward"},
    {"granitehybrid", "Mamba-2 state spaces in some layers"},
    {"jamba", "Mamba state spaces in some layers"},
    {"kimi-linear", "a delta rule with a decay for each channel"},
    {"mamba", "a selective state space"},
    {"mamba2", "a selective state space with heads (Mamba-2)"},
    {"nemotron_h", "Mamba-2 state spaces in some layers"},
    {"nemotron_h_moe", "Mamba-2 state spaces in some layers"},
    {"plamo2", "Mamba-2 state spaces in some layers"},
    {"rwkv6", "a linear recurrence with token shift"},
    {"rwkv7", "a linear recurrence with token shift"},
    {"t5", "an encoder beside the decoder"},
};

}  // namespace

std::string_view missing_mathematics(std::string_view architecture) {
  const auto* row = std::ranges::find(kMissing, architecture, &Missing::architecture);
  return row == std::end(kMissing) ? "" : row->mathematics;
}

}  // namespace lane
