// Statements to ops. Names are resolved here, roles and shapes by check().
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "check.h"
#include "lane/error.h"

namespace lane {
namespace {

constexpr int64_t kMostElements = int64_t(1) << 50;  // so that sizes in bytes stay well inside 64 bits

const OptionKey* find_option(const OpRow& row, std::string_view name) {
  for (const auto* keys : {&row.required, &row.optional})
    for (const OptionKey& key : *keys)
      if (option_name(key) == name) return &key;
  return nullptr;
}

class Lifter {
 public:
  explicit Lifter(const SyntaxTree& tree) {
    for (const Statement& s : tree.statements)
      if (s.kind == Statement::Kind::Let) bound_later_.try_emplace(s.target.name, s.line);
  }

  void statement(const Statement& s) {
    line_ = s.line;
    switch (s.kind) {
      case Statement::Kind::Let:
        return let(s);
      case Statement::Kind::Set:
        return set(s);
      case Statement::Kind::Show:
        return show(s);
    }
  }

  StepGraph finish() {
    if (graph_.outputs.empty()) refuse("the step shows no output");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw GraphError(line_, why); }

  // --- names ---
  ValueId find(const std::string& name) const {
    if (const auto it = ids_.find(name); it != ids_.end()) return it->second;
    const auto later = bound_later_.find(name);
    if (later == bound_later_.end()) refuse(fmt::format("'{}' is never bound", name));
    refuse(fmt::format("'{}' is used before line {} binds it", name, later->second));
  }

  ValueId bind(const std::string& name, ValueKind kind, const graph::Result& result, int producer) {
    if (const auto it = ids_.find(name); it != ids_.end())
      refuse(fmt::format("'{}' is bound twice, first in line {}", name, graph_.value(it->second).line));
    const Shape& s = result.shape;
    if (__int128(s.experts) * s.rows * s.columns > kMostElements) refuse(fmt::format("'{}' is too large", name));
    const ValueId id = ValueId(graph_.values.size());
    ids_.emplace(name, id);
    graph_.values.push_back({name, kind, s, result.integers, line_, producer});
    return id;
  }

  // --- Let ---
  void let(const Statement& s) {
    if (const auto* d = std::get_if<Declaration>(&s.value)) return declare(s, *d);
    if (s.is_mutable) refuse(fmt::format("'{}' is mutable; only a Carried array is", s.target.name));
    if (const auto* v = std::get_if<PhraseValue>(&s.value)) {
      compute(s.target.name, phrase(s.target.name, *v));
    } else if (const auto* list = std::get_if<ListValue>(&s.value)) {
      Op op = new_op(OpKind::Rows);
      for (const std::string& name : list->names) op.operands.push_back(find(name));
      compute(s.target.name, std::move(op));
    } else {
      const Operand& o = std::get<Operand>(s.value);
      if (!o.indexed) refuse(fmt::format("'Let {} be {}' is no op: a value has one name", s.target.name, o.name));
      place(s.target.name, o);
    }
  }

  void declare(const Statement& s, const Declaration& d) {
    static const std::unordered_map<std::string_view, ValueKind> kKinds = {{"Constant", ValueKind::Constant},
                                                                           {"Quantized", ValueKind::Quantized},
                                                                           {"Carried", ValueKind::Carried},
                                                                           {"Input", ValueKind::Input}};
    const auto kind = kKinds.find(d.kind);
    if (kind == kKinds.end())
      refuse(fmt::format("unknown kind '{}'; accepted are Constant, Quantized, Carried and Input", d.kind));
    const bool carried = kind->second == ValueKind::Carried, input = kind->second == ValueKind::Input;
    if (s.is_mutable != carried)
      refuse(
          fmt::format("'{}' is {}; a Carried array is declared mutable, and nothing else is", s.target.name, d.kind));
    bind(s.target.name, kind->second, {declared_shape(d, input), input}, -1);
  }

  Shape declared_shape(const Declaration& d, bool input) const {
    Shape shape;
    std::unordered_set<std::string_view> seen;
    for (const OptionText& o : d.options) {
      int64_t* field = o.name == "columns"             ? &shape.columns
                       : o.name == "rows" && !input    ? &shape.rows
                       : o.name == "experts" && !input ? &shape.experts
                                                       : nullptr;
      if (!field) refuse(fmt::format("{} has no field '{}'", d.kind, o.name));
      if (!seen.insert(o.name).second) refuse(fmt::format("field '{}' is given twice", o.name));
      if (!o.integer || o.value < 1 || o.value > 2147483647)
        refuse(fmt::format("{} {} is out of range; accepted is an integer from 1 to 2147483647", o.name, o.value));
      *field = int64_t(o.value);
    }
    return shape;
  }

  // --- values ---
  Op new_op(OpKind kind, std::vector<ValueId> operands = {}) const {
    Op op;
    op.kind = kind;
    op.operands = std::move(operands);
    op.line = line_;
    return op;
  }

  void compute(const std::string& name, Op op) {
    const graph::Result result = graph::check(graph_, op);
    op.result = bind(name, ValueKind::Computed, result, int(graph_.ops.size()));
    graph_.ops.push_back(std::move(op));
  }

  /// The op that `phrase` says, unless it changes state.
  Op phrase(const std::string& target, const PhraseValue& v) {
    Op op = operation(target, v);
    if (op.kind == OpKind::Shift || op.kind == OpKind::DeltaRule)
      refuse(
          fmt::format("the {} changes carried state: 'Set {} to the {} of …'", v.phrase, v.operands[0].name, v.phrase));
    return op;
  }

  Op operation(const std::string& target, const PhraseValue& v) {
    const OpRow* row = find_phrase(v.phrase);
    if (!row) refuse(fmt::format("unknown phrase '{}'", v.phrase));
    Op op = new_op(row->kind);
    graph::check_operand_count(row->kind, v.operands.size(), line_);  // before places become ops
    for (const Operand& o : v.operands) op.operands.push_back(operand(target, o));
    op.options = options(*row, v);
    if (op.kind == OpKind::RowLookup && op.operands.size() == 2) op.from = op.through = Place{op.operands[1], 1};
    return op;
  }

  std::vector<std::pair<OptionKey, double>> options(const OpRow& row, const PhraseValue& v) const {
    std::vector<std::pair<OptionKey, double>> list;
    for (const OptionText& o : v.options) {
      const OptionKey* key = find_option(row, o.name);
      if (!key) refuse(fmt::format("the {} has no option '{}'", v.phrase, o.name));
      if (option_is_integer(*key) && !o.integer) refuse(fmt::format("option '{}' is an integer", o.name));
      list.emplace_back(*key, o.value);
    }
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return list;
  }

  // --- places ---
  ValueId operand(const std::string& target, const Operand& o) {
    if (!o.indexed) return find(o.name);
    const std::string name = fresh_name(target);
    place(name, o);
    return ids_.at(name);
  }

  /// A place among a phrase's operands is an op of its own, with a name the text does not use.
  std::string fresh_name(const std::string& target) const {
    for (int i = 1;; ++i) {
      std::string name = fmt::format("{}_item{}", target, i);
      if (!ids_.contains(name) && !bound_later_.contains(name)) return name;
    }
  }

  /// `item (tok + 1) of W` looks up rows of a matrix; `item 2 of x` takes rows of what the step computes.
  void place(const std::string& name, const Operand& o) {
    const ValueId array = find(o.name);
    Op op = new_op(OpKind::RowSlice, {array});
    op.from = subscript(o.from);
    op.through = subscript(o.through);
    if (op.from->base != kNoValue && graph_.value(array).kind != ValueKind::Computed) {
      op.kind = OpKind::RowLookup;
      op.operands.push_back(op.from->base);
    }
    compute(name, std::move(op));
  }

  Place subscript(const Subscript& s) const { return {s.name.empty() ? kNoValue : find(s.name), s.offset}; }

  // --- Set and Show ---
  void set(const Statement& s) {
    const ValueId target = find(s.target.name);
    if (graph_.value(target).kind != ValueKind::Carried)
      refuse(fmt::format("Set of '{}', which is not Carried", s.target.name));
    Op op = s.target.indexed ? write(s, target) : update(s, target);
    graph::check(graph_, op);
    op.result = target;
    graph_.ops.push_back(std::move(op));
  }

  Op write(const Statement& s, ValueId target) {
    const auto* o = std::get_if<Operand>(&s.value);
    if (!o) refuse("a cache write takes a name: bind the value first");
    Op op = new_op(OpKind::Write, {target});
    op.operands.push_back(operand(s.target.name, *o));
    op.from = subscript(s.target.from);
    op.through = subscript(s.target.through);
    return op;
  }

  Op update(const Statement& s, ValueId target) {
    const auto* v = std::get_if<PhraseValue>(&s.value);
    if (!v) refuse(fmt::format("'{}' can be set to a shift or a delta rule of itself, or by rows", s.target.name));
    Op op = operation(s.target.name, *v);
    if (op.kind != OpKind::Shift && op.kind != OpKind::DeltaRule)
      refuse(fmt::format("the {} changes no state; only the shift and the delta rule can be Set", v->phrase));
    if (op.operands[0] != target)
      refuse(fmt::format("the {} of '{}' is set to '{}'; it changes its first operand", v->phrase,
                         graph_.value(op.operands[0]).name, s.target.name));
    return op;
  }

  void show(const Statement& s) {
    if (!ids_.contains(s.target.name) && !bound_later_.contains(s.target.name))
      refuse(fmt::format("output '{}' is never bound", s.target.name));
    const ValueId id = find(s.target.name);
    if (graph_.value(id).kind != ValueKind::Computed) refuse(fmt::format("output '{}' is not computed", s.target.name));
    if (!shown_.insert(id).second) refuse(fmt::format("output '{}' is shown twice", s.target.name));
    graph_.outputs.push_back(id);
  }

  StepGraph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  std::unordered_map<std::string, int> bound_later_;  // every name a Let binds, with its line
  std::unordered_set<ValueId> shown_;
  int line_ = 1;
};

}  // namespace

StepGraph lift(const SyntaxTree& tree) {
  Lifter lifter(tree);
  for (const Statement& s : tree.statements) lifter.statement(s);
  return lifter.finish();
}

}  // namespace lane
