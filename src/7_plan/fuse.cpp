#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "7_plan/activations.h"
#include "7_plan/rules.h"
#include "7_plan/streamed.h"
#include "lane/error.h"

namespace lane {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool held(const Rule& rule, const Options& options) {
  return contains(options.hold, rule.name) || contains(options.hold, "all") ||
         (rule.asked && !contains(options.fuse, rule.name));
}

/// Whether the one touches what the other changes.
bool conflicts(const Ref& a, const Ref& b) {
  return a.kind == b.kind && a.index == b.index && (a.kind == Ref::Kind::Array || a.kind == Ref::Kind::State);
}
bool conflicts(const std::vector<Ref>& a, const std::vector<Ref>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Ref& x) {
    return std::any_of(b.begin(), b.end(), [&](const Ref& y) { return conflicts(x, y); });
  });
}
/// Whether the two ops may not change places.
bool ordered(const StepOp& a, const StepOp& b) {
  return conflicts(a.writes(), b.reads()) || conflicts(a.writes(), b.writes()) || conflicts(a.reads(), b.writes());
}

/// Whether all matched ops can run where the last (or else the first) of them stands: none of them depends on an op in
/// between that is not matched, nor such an op on it.
bool can_gather(const Step& step, const std::vector<int>& matched, int place) {
  for (const int m : matched) {
    const auto [from, to] = std::minmax(m, place);
    for (int i = from; i <= to; i++)
      if (!std::binary_search(matched.begin(), matched.end(), i) && ordered(step.ops[size_t(m)], step.ops[size_t(i)]))
        return false;
  }
  return true;
}

/// The matched ops leave, and `fused` stands where `place` was.
void replace(Step& step, const std::vector<int>& matched, int place, StepOp fused) {
  fused.ops.clear();
  for (const int m : matched) {
    const std::vector<int>& ops = step.ops[size_t(m)].ops;
    fused.ops.insert(fused.ops.end(), ops.begin(), ops.end());
  }
  std::sort(fused.ops.begin(), fused.ops.end());
  std::vector<StepOp> kept;
  for (int i = 0; i < int(step.ops.size()); i++) {
    if (i == place)
      kept.push_back(fused);
    else if (!std::binary_search(matched.begin(), matched.end(), i))
      kept.push_back(std::move(step.ops[size_t(i)]));
  }
  step.ops = std::move(kept);
}

/// Applies the rule at the first place where it can be; false where there is none from op `from` on.
bool apply_once(Step& step, const Rule& rule, const std::vector<PatternNode>& pattern, const Weights& weights,
                const Options& options, const Chip& chip, int& from) {
  const Matcher matcher(step);
  for (; from < int(step.ops.size()); from++) {
    std::optional<Match> match = matcher.match(pattern, from);
    if (!match) continue;
    const RuleContext context{step, weights, options, chip, *match};
    if (!rule.guard(context)) continue;
    const StepOp fused = rule.fused(context);
    std::vector<int>& matched = match->matched;
    std::sort(matched.begin(), matched.end());
    for (const int place : {matched.back(), matched.front()}) {
      if (!can_gather(step, matched, place)) continue;
      replace(step, matched, place, fused);
      from = matched.front();
      return true;
    }
  }
  return false;
}

/// Arrays that only fused ops passed among themselves are no longer computed.
void drop_unwritten_arrays(Step& step) {
  std::vector<bool> written(step.arrays.size(), false);
  for (const StepOp& op : step.ops)
    for (const Ref& ref : op.writes())
      if (ref.kind == Ref::Kind::Array) written[size_t(ref.index)] = true;
  for (size_t i = 0; i < written.size(); i++)
    if (!written[i]) step.arrays[i].kind = StepArray::Kind::Inner;
}

/// What a rule may save: launches, and bytes of arrays that they read and write.
struct Cost {
  int64_t launches = 0, bytes = 0;
};

/// A quantized product whose blocks do not quantize by themselves has a launch for that, the first of an array's: what
/// it adds.
Cost quantization_cost(const StepOp& product, const Weights& weights, const Options& options,
                       std::set<int>& quantized) {
  const bool of_matrix = product.kind == OpKind::MatrixProduct && product.fused == Fused::None;
  if (!of_matrix || product.parts.prepares || product.operands.empty()) return {};
  const Ref &w = product.operands[0], &x = product.operands.back();
  if (w.kind != Ref::Kind::Weight || x.kind != Ref::Kind::Array || is_streamed(weights, product)) return {};
  const ActivationKind kind = activation_kind(options, *weights.placements[size_t(w.index)].format);
  if (kind == ActivationKind::Floats || !quantized.insert(x.index).second) return {};
  return {1, 2 * prepared_bytes(kind, x.shape)};
}

Cost cost_of(const Step& step, const Weights& weights, const Options& options) {
  Cost cost;
  std::set<int> quantized;
  const auto bytes = [](const std::vector<Ref>& refs) {
    int64_t sum = 0;
    for (const Ref& ref : refs)
      if (ref.kind == Ref::Kind::Array) sum += ref.shape.elements() * int64_t(sizeof(float));
    return sum;
  };
  for (const StepOp& op : step.ops) {
    const Cost extra = quantization_cost(op, weights, options, quantized);
    cost.launches += 1 + extra.launches;
    cost.bytes += bytes(op.reads()) + bytes(op.writes()) + extra.bytes;
  }
  return cost;
}

void check_names(std::string_view option, const std::vector<std::string>& given,
                 const std::vector<std::string>& known) {
  std::string accepted;
  for (const std::string& name : known)
    if (accepted.find("'" + name + "'") == std::string::npos)
      accepted += fmt::format("{}'{}'", accepted.empty() ? "" : ", ", name);
  for (const std::string& name : given)
    if (!contains(known, name))
      throw UsageError(fmt::format("{} '{}': no such rule; accepted are {}", option, printable(name), accepted));
}

}  // namespace

void check_rule_names(const Options& options) {
  std::vector<std::string> all, asked;
  for (const Rule& rule : rules()) {
    all.emplace_back(rule.name);
    if (rule.asked) asked.emplace_back(rule.name);
  }
  all.emplace_back("all");
  check_names("--hold", options.hold, all);
  check_names("--fuse", options.fuse, asked);
}

Step fuse(Step step, const Weights& weights, const Options& options, const Chip& chip, std::vector<Fired>& fired) {
  Cost before = cost_of(step, weights, options);
  for (const Rule& rule : rules()) {
    if (held(rule, options)) continue;
    const std::vector<PatternNode> pattern = parse_pattern(rule.pattern);
    int from = 0, times = 0;
    while (apply_once(step, rule, pattern, weights, options, chip, from)) times++;
    if (times == 0) continue;
    const Cost after = cost_of(step, weights, options);
    auto known = std::find_if(fired.begin(), fired.end(), [&](const Fired& f) { return f.rule == rule.name; });
    if (known == fired.end()) known = fired.insert(fired.end(), Fired{std::string(rule.name), 0, 0, 0});
    known->times += times;
    known->launches += before.launches - after.launches, known->bytes += before.bytes - after.bytes;
    before = after;
  }
  drop_unwritten_arrays(step);
  return step;
}

std::vector<Ref> StepOp::reads() const {
  std::vector<Ref> refs = operands;
  for (const Ref& part : {parts.norm, parts.bias, parts.residual, parts.post, parts.carried}) refs.push_back(part);
  for (const StepOp& member : members)
    for (const Ref& ref : member.reads()) refs.push_back(ref);
  return refs;
}

std::vector<Ref> StepOp::writes() const {
  std::vector<Ref> refs;
  if (parts.sum.kind != Ref::Kind::None) refs.push_back(parts.sum);
  if (result.kind != Ref::Kind::None) {
    refs.push_back(result);
    return refs;
  }
  for (const StepOp& member : members)
    for (const Ref& ref : member.writes()) refs.push_back(ref);
  return refs;
}

}  // namespace lane
