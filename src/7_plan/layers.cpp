#include <algorithm>
#include <cctype>
#include <string>

#include "7_plan/step.h"

namespace lane {
namespace {

/// The layer that the op belongs to, or -1: the first one in the names of its values, where its result is a layer's. So
/// a layer's last sum, which bears the next one's number, is its own. What looks a token up belongs to none.
int layer_of(const StepGraph& graph, const Op& op) {
  const auto named = [&](ValueId id) { return layer_of_name(split_sequence(graph.value(id).name).first); };
  int layer = op.kind == OpKind::RowLookup ? -1 : named(op.result);
  for (const ValueId operand : op.operands)
    if (layer >= 0 && operand >= 0 && named(operand) >= 0) layer = std::min(layer, named(operand));
  return layer;
}

/// The first of the layers that a launch's ops belong to.
int layer_of(const StepGraph& graph, const Launch& launch) {
  int first = -1;
  for (const int op : launch.ops) {
    const int layer = layer_of(graph, graph.ops[size_t(op)]);
    if (layer >= 0 && (first < 0 || layer < first)) first = layer;
  }
  return first;
}

}  // namespace

int layer_of_name(const std::string& name) {
  size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) digits--;
  const std::string number = name.substr(digits);
  return number.empty() || number.size() > 6 ? -1 : std::stoi(number);
}

std::vector<int> launches_of_layers(const StepGraph& graph, const std::vector<Launch>& launches) {
  std::vector<int> counts;
  for (const Launch& launch : launches) {
    const int layer = layer_of(graph, launch);
    if (layer < 0) continue;
    if (size_t(layer) >= counts.size()) counts.resize(size_t(layer) + 1);
    counts[size_t(layer)]++;
  }
  return counts;
}

}  // namespace lane
