#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

#include "6_weights/repacked.h"
#include "7_plan/step.h"
#include "7_plan/tensor_attention.h"
#include "lane/error.h"

namespace lane {
namespace {

constexpr uint64_t kStateAlignment = 256;
uint64_t aligned(uint64_t bytes) { return (bytes + kStateAlignment - 1) / kStateAlignment * kStateAlignment; }

/// Sorts "keys_2" before "keys_10": by the layer, then by the name. The order is the same whatever a form's text says
/// first.
std::tuple<int, std::string> layer_order(const std::string& name) { return {std::max(0, layer_of_name(name)), name}; }

std::set<ValueId> caches_of(const StepGraph& graph) {
  std::set<ValueId> caches;
  for (const Op& op : graph.ops)
    if (op.kind == OpKind::Attention) caches.insert({op.operands[1], op.operands[2]});
  return caches;
}

uint64_t bytes_of(const Shape& shape, KvType type, const std::string& name) {
  const uint64_t elements = uint64_t(shape.elements());
  switch (type) {
    case KvType::F32:
      return elements * 4;
    case KvType::F16:
      return elements * 2;
    case KvType::Q8_0:
      if (shape.columns % 32 != 0)
        throw NoKernelError(
            "attention", "q8_0 cache", name,
            fmt::format("a cache row of {} values is no multiple of 32; --kv f16 has no such limit", shape.columns));
      return elements / 32 * 34;
  }
  return 0;
}

/// A counter for each head of the attention that has most.
void add_arrivals(States& result, const StepGraph& graph) {
  int64_t heads = 0;
  for (const Op& op : graph.ops)
    if (op.kind == OpKind::Attention) heads = std::max(heads, op.integer(OptionKey::Heads));
  if (heads == 0) return;
  result.arrivals = int(result.states.size());
  result.states.push_back({.name = "arrivals",
                           .offset = result.stride,
                           .bytes = uint64_t(heads) * sizeof(int32_t),
                           .shape = {1, 1, heads},
                           .type = "i32"});
  result.stride = aligned(result.states.back().offset + result.states.back().bytes);
}

/// Room for the widest sum of a product and something else.
void add_links(States& result, const StepGraph& graph) {
  int64_t columns = 0;
  for (const Op& op : graph.ops)
    if (op.kind == OpKind::Sum) columns = std::max(columns, graph.value(op.result).shape.columns);
  if (columns == 0) return;
  result.links = int(result.states.size());
  for (int i = 0; i < kLinks; i++) {
    result.states.push_back({.name = fmt::format("link_{}", i),
                             .offset = result.stride,
                             .bytes = uint64_t(columns) * sizeof(float),
                             .shape = {1, 1, columns},
                             .type = "f32"});
    result.stride = aligned(result.states.back().offset + result.states.back().bytes);
  }
}

}  // namespace

std::pair<std::string, int> split_sequence(const std::string& name) {
  const size_t cut = name.rfind("_s");
  if (cut == std::string::npos || cut + 2 == name.size() || name.size() - cut > 8) return {name, 0};
  if (!std::all_of(name.begin() + long(cut) + 2, name.end(), [](unsigned char c) { return std::isdigit(c); }))
    return {name, 0};
  return {name.substr(0, cut), std::stoi(name.substr(cut + 2))};
}

States place_states(const Cut& cut, const StepGraph& graph, const Options& options, const Chip& chip) {
  const std::set<ValueId> caches = caches_of(graph);
  std::map<std::tuple<int, std::string>, std::vector<std::pair<ValueId, int>>> by_name;
  for (ValueId id = 0; id < ValueId(graph.values.size()); id++) {
    if (graph.value(id).kind != ValueKind::Carried) continue;
    const auto [name, sequence] = split_sequence(graph.value(id).name);
    if (sequence >= cut.sequences())
      throw NoKernelError("state", std::string(to_text(cut.identity.kind)), graph.value(id).name,
                          "there is no such sequence");
    by_name[layer_order(name)].emplace_back(id, sequence);
  }

  States result;
  for (const auto& [order, values] : by_name) {
    const Value& first = graph.value(values.front().first);
    const KvType type = caches.contains(values.front().first) ? options.kv : KvType::F32;
    const State state{.name = std::get<1>(order),
                      .offset = result.stride,
                      .bytes = bytes_of(first.shape, type, first.name),
                      .shape = first.shape,
                      .type = std::string(to_text(type))};
    result.stride = aligned(state.offset + state.bytes);
    for (const auto& [id, sequence] : values) result.of_value[id] = {int(result.states.size()), sequence};
    result.states.push_back(state);
  }
  if (can_attend_on_tensor_cores(options, chip)) add_arrivals(result, graph);
  if (streams(options, chip)) add_links(result, graph);
  return result;
}

}  // namespace lane
