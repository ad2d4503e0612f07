// Fusion: rules as data, and one matcher that applies them.
#pragma once
#include <span>
#include <string_view>

#include "7_plan/pattern.h"

namespace lane {

/// What a rule's guard and builder look at.
struct RuleContext {
  const Step& step;
  const Weights& weights;
  const Options& options;
  const Chip& chip;
  const Match& match;
  const StepOp& op(std::string_view label) const { return step.ops[size_t(match.ops.find(label)->second)]; }
  const Ref& value(std::string_view variable) const { return match.values.find(variable)->second; }
};

struct Rule {
  std::string_view name;  // several rows may share one
  std::string_view pattern;
  bool (*guard)(const RuleContext&);
  /// The op that stands for all matched ones; its graph ops are filled in by the engine.
  StepOp (*fused)(const RuleContext&);
  std::string_view kernel;  // what computes it
  std::string_view saves;   // in words, for `--emit rules`
  bool asked = false;       // applied only where Options::fuse names it
};
/// In the order in which they are tried: the groups below, one after the other.
const std::vector<Rule>& rules();
std::span<const Rule> product_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> expert_rules();
std::span<const Rule> recurrent_rules();

/// Throws UsageError where the options hold a rule that does not exist, or ask for one that is not to be asked for.
void check_rule_names(const Options& options);

/// Applies every rule that is not held, each as often as it matches; what that saves goes to `fired`.
Step fuse(Step step, const Weights& weights, const Options& options, const Chip& chip, std::vector<Fired>& fired);

}  // namespace lane
