// Rules around attention.
#include <algorithm>
#include <array>

#include "7_plan/rule_parts.h"
#include "7_plan/tensor_attention.h"

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

/// Norms of each head of `width` values alone, as attention takes them.
bool norms_heads(const StepOp& norm, int64_t width) {
  return norm.integer(OptionKey::Width) == width && absent(norm.parts.residual) &&
         norm.operands[1].shape.elements() == width;
}
bool norms_heads(const RuleContext& c, int64_t width) {
  const StepOp &q = c.op("q normed"), &k = c.op("k normed");
  return norms_heads(q, width) && norms_heads(k, width) && q.option(OptionKey::Epsilon) == k.option(OptionKey::Epsilon);
}
bool norms_turns_and_writes(const RuleContext& c) {
  return turns_and_writes(c) && norms_heads(c, c.op("q turned").integer(OptionKey::Width));
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

// split attention: the same and the attention in one launch, for one token a sequence. Operands: as above, then sinks,
// the caches and the arrival counters; members: the attention and what becomes of the key's write and the value's.

bool splits(const RuleContext& c) {
  return can_attend_on_tensor_cores(c.options, c.chip) && fits_split_attention(c.op("attention"), c.chip);
}
bool splits_turned(const RuleContext& c) {
  const StepOp& q = c.op("q turned");
  return splits(c) && same_turn(q, c.op("k turned")) &&
         q.integer(OptionKey::Width) == c.op("attention").integer(OptionKey::Width);
}
bool splits_normed(const RuleContext& c) {
  return splits(c) && norms_heads(c, c.op("attention").integer(OptionKey::Width));
}
bool splits_normed_and_turned(const RuleContext& c) { return splits_turned(c) && splits_normed(c); }

Ref arrivals_of(const Step& step) {
  Ref arrivals;
  arrivals.kind = Ref::Kind::State;
  arrivals.index = step.arrivals;
  return arrivals;
}

StepOp split_attention(const RuleContext& c, bool writes, bool norms, bool turns) {
  const auto value = [&](bool there, std::string_view name) { return there ? c.value(name) : Ref{}; };
  const StepOp& attention = c.op("attention");
  StepOp fused = attention;
  fused.fused = Fused::SplitAttention;
  fused.result = {};
  fused.options = {{OptionKey::Turned, turns ? c.op("q turned").option(OptionKey::Turned) : 0},
                   {OptionKey::Paired, turns ? c.op("q turned").option(OptionKey::Paired) : 0},
                   {OptionKey::Epsilon, norms ? c.op("q normed").option(OptionKey::Epsilon) : 0}};
  fused.operands = {c.value("q"),          value(writes, "k"),    value(writes, "v"), value(norms, "qw"),
                    value(norms, "kw"),    value(turns, "table"), c.value("pos"),     c.value("sinks"),
                    attention.operands[1], attention.operands[2], arrivals_of(c.step)};
  fused.members = {member(attention)};
  if (writes) fused.members.insert(fused.members.end(), {member(c.op("key")), member(c.op("value"))});
  return fused;
}

// chunk attention: of several tokens a sequence. It is the attention as it was, last, since attention inputs look for
// one.

bool chunks(const RuleContext& c) {
  return can_attend_on_tensor_cores(c.options, c.chip) && fits_chunk_attention(c.op("attention"), c.chip);
}
StepOp chunk_attention(const RuleContext& c) {
  StepOp fused = c.op("attention");
  fused.fused = Fused::ChunkAttention;
  return fused;
}

constexpr std::array kRules = {
    Rule{"split attention",
         "attention:attention(q turned:rotation(q normed:rms norm(q, qw), pos, table), K, V, pos, sinks); "
         "key:write(K, k turned:rotation(k normed:rms norm(k, kw), pos, table), pos); value:write(V, v, pos)",
         splits_normed_and_turned, [](const RuleContext& c) { return split_attention(c, true, true, true); },
         "attention_split", "six launches, and five arrays written and read"},
    Rule{"split attention",
         "attention:attention(q turned:rotation(q, pos, table), K, V, pos, sinks); "
         "key:write(K, k turned:rotation(k, pos, table), pos); value:write(V, v, pos)",
         splits_turned, [](const RuleContext& c) { return split_attention(c, true, false, true); }, "attention_split",
         "four launches, and three arrays written and read"},
    Rule{"split attention",
         "attention:attention(q normed:rms norm(q, qw), K, V, pos, sinks); "
         "key:write(K, k normed:rms norm(k, kw), pos); value:write(V, v, pos)",
         splits_normed, [](const RuleContext& c) { return split_attention(c, true, true, false); }, "attention_split",
         "four launches, and three arrays written and read"},
    Rule{"split attention", "attention:attention(q, K, V, pos, sinks); key:write(K, k, pos); value:write(V, v, pos)",
         splits, [](const RuleContext& c) { return split_attention(c, true, false, false); }, "attention_split",
         "two launches"},
    Rule{"split attention", "attention:attention(q, K, V, pos, sinks)", splits,
         [](const RuleContext& c) { return split_attention(c, false, false, false); }, "attention_split",
         "no launch: the context's rows are shared between blocks"},
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
    Rule{"chunk attention", "attention:attention(q, K, V, pos, sinks)", chunks, chunk_attention, "attention_chunk",
         "no launch: products on tensor cores"},
};

}  // namespace

std::span<const Rule> attention_rules() { return kRules; }

}  // namespace lane
