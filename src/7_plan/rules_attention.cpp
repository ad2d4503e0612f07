// Rules around attention.
#include <algorithm>
#include <array>

#include "7_plan/rule_parts.h"

namespace lane {
namespace {

// attention inputs: q/k norm by head, rotary and the cache writes. Operands: q, k, v, the norms' weights, the table,
// the position; members: what becomes of the query, the key's write and the value's. Absent ones are empty.

/// The attention that reads these caches.
const StepOp* attention_of(const RuleContext& c) {
  for (const StepOp& op : c.step.ops)
    if (op.fused == Fused::None && op.kind == OpKind::Attention && op.operands[1].index == c.value("K").index &&
        op.operands[2].index == c.value("V").index)
      return &op;
  return nullptr;
}

bool same_turn(const StepOp& a, const StepOp& b) {
  constexpr std::array kKeys = {OptionKey::Width, OptionKey::Turned, OptionKey::Paired};
  return std::all_of(kKeys.begin(), kKeys.end(), [&](OptionKey key) { return a.integer(key) == b.integer(key); });
}

bool turns_and_writes(const RuleContext& c) {
  const StepOp* attention = attention_of(c);
  const StepOp &q = c.op("q turned"), &k = c.op("k turned");
  return attention && attention->operands[0] == q.result && same_turn(q, k) &&
         q.integer(OptionKey::Width) == attention->integer(OptionKey::Width);
}

/// A norm of each head alone, as attention takes them.
bool norms_heads(const StepOp& norm, const StepOp& turned) {
  return norm.integer(OptionKey::Width) == turned.integer(OptionKey::Width) && absent(norm.parts.residual) &&
         norm.operands[1].shape.elements() == norm.integer(OptionKey::Width);
}
bool norms_turns_and_writes(const RuleContext& c) {
  const StepOp &q = c.op("q normed"), &k = c.op("k normed");
  return turns_and_writes(c) && norms_heads(q, c.op("q turned")) && norms_heads(k, c.op("k turned")) &&
         q.option(OptionKey::Epsilon) == k.option(OptionKey::Epsilon);
}
bool writes_both(const RuleContext& c) { return attention_of(c) != nullptr; }

/// The caches' shapes and what the attention says of them; `turned` is null where nothing is turned.
StepOp attention_inputs(const RuleContext& c, const StepOp* query, const StepOp* turned, double epsilon) {
  const StepOp& attention = *attention_of(c);
  const int64_t width = attention.integer(OptionKey::Width);
  StepOp fused = c.op("value");
  fused.fused = Fused::AttentionInputs;
  fused.result = {};
  fused.options = {{OptionKey::Heads, query ? attention.option(OptionKey::Heads) : 0},
                   {OptionKey::Groups, attention.option(OptionKey::Groups)},
                   {OptionKey::Width, double(width)},
                   {OptionKey::ValueWidth, attention.option(OptionKey::ValueWidth, double(width))},
                   {OptionKey::Turned, turned ? turned->option(OptionKey::Turned) : 0},
                   {OptionKey::Paired, turned ? turned->option(OptionKey::Paired) : 0},
                   {OptionKey::Epsilon, epsilon}};
  fused.members = {query ? member(*query) : StepOp{}, member(c.op("key")), member(c.op("value"))};
  return fused;
}
StepOp normed_inputs(const RuleContext& c) {
  const StepOp& turned = c.op("q turned");
  StepOp fused = attention_inputs(c, &turned, &turned, c.op("q normed").option(OptionKey::Epsilon));
  fused.operands = {c.value("q"),  c.value("k"),     c.value("v"),  c.value("qw"),
                    c.value("kw"), c.value("table"), c.value("pos")};
  return fused;
}
StepOp turned_inputs(const RuleContext& c) {
  const StepOp& turned = c.op("q turned");
  StepOp fused = attention_inputs(c, &turned, &turned, 0);
  fused.operands = {c.value("q"), c.value("k"), c.value("v"), {}, {}, c.value("table"), c.value("pos")};
  return fused;
}
StepOp written_inputs(const RuleContext& c) {
  StepOp fused = attention_inputs(c, nullptr, nullptr, 0);
  fused.operands = {{}, c.value("k"), c.value("v"), {}, {}, {}, c.value("pos")};
  return fused;
}

constexpr std::array kRules = {
    Rule{"attention inputs",
         "q turned:rotation(q normed:rms norm(q, qw), pos, table); "
         "key:write(K, k turned:rotation(k normed:rms norm(k, kw), pos, table), pos); value:write(V, v, pos)",
         norms_turns_and_writes, normed_inputs, "attention_inputs", "five launches, and four arrays written and read"},
    Rule{"attention inputs",
         "q turned:rotation(q, pos, table); key:write(K, k turned:rotation(k, pos, table), pos); "
         "value:write(V, v, pos)",
         turns_and_writes, turned_inputs, "attention_inputs", "three launches, and an array written and read"},
    Rule{"attention inputs", "key:write(K, k, pos); value:write(V, v, pos)", writes_both, written_inputs,
         "attention_inputs", "a launch"},
};

}  // namespace

std::span<const Rule> attention_rules() { return kRules; }

}  // namespace lane
