#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "7_plan/step.h"
#include "lane/error.h"

namespace lane {
namespace {

constexpr size_t kAttentionOperands = 5;  // the last are sinks, absent in most models

/// Everything about an op but its sequence: see note [folding].
std::string signature(const StepOp& op) {
  std::string text = fmt::format("{}", int(op.kind));
  for (const auto& [key, value] : op.options) text += fmt::format(" {}={}", int(key), value);
  for (const Ref& ref : op.operands)
    text += fmt::format(" {}:{}:{}:{}:{}x{}x{}", int(ref.kind), ref.index, ref.row, ref.column, ref.shape.experts,
                        ref.shape.rows, ref.shape.columns);
  return text;
}

class Folder {
 public:
  Folder(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options, const Chip& chip)
      : cut_(cut), graph_(graph), weights_(weights), places_(place_states(cut, graph, options, chip)) {
    step_.states = places_.states;
    step_.arrivals = places_.arrivals;
    step_.links = places_.links;
    step_.state_stride = places_.stride;
    refs_.resize(graph.values.size());
    last_op_.assign(size_t(cut.sequences()), -1);
  }

  Step run() {
    declare();
    for (int i = 0; i < int(graph_.ops.size()); i++) add(i);
    for (const StepOp& op : step_.ops) require_all_sequences(op);
    for (const ValueId id : graph_.outputs) mark_output(id);
    return std::move(step_);
  }

 private:
  const Value& value(ValueId id) const { return graph_.value(id); }

  void declare() {
    int positions = 0;
    for (ValueId id = 0; id < ValueId(graph_.values.size()); id++) {
      const Value& v = value(id);
      Ref& ref = refs_[size_t(id)];
      ref.shape = v.shape;
      switch (v.kind) {
        case ValueKind::Constant:
        case ValueKind::Quantized:
          ref.kind = Ref::Kind::Weight;
          ref.index = weights_.find(v.name);
          break;
        case ValueKind::Carried:
          ref.kind = Ref::Kind::State;
          ref.index = places_.of_value.at(id).state;
          ref.sequence = places_.of_value.at(id).sequence;
          break;
        case ValueKind::Input:
          // Positions are declared in the order of their sequences; the tokens are one input for all.
          ref.kind = Ref::Kind::Io;
          ref.index = int(v.name.starts_with("pos") ? Io::Positions : Io::Tokens);
          if (v.name.starts_with("pos")) ref.sequence = positions++;
          break;
        case ValueKind::Computed:
          break;
      }
    }
  }

  void add(int index) {
    const Op& op = graph_.ops[size_t(index)];
    if (op.kind == OpKind::RowSlice) return slice(op);
    if (is_part_of_a_row(op)) return slice_row(op);
    StepOp step;
    step.kind = op.kind;
    step.options = op.options;
    step.ops = {index};
    for (const ValueId id : op.operands) step.operands.push_back(refs_[size_t(id)]);
    if (op.kind == OpKind::Write) step.operands.push_back(position_of(op));
    if (op.kind == OpKind::Attention) step.operands.resize(kAttentionOperands);
    if (op.kind == OpKind::Rotation) {
      step.operands.resize(2);
      step.operands.push_back(table_of(op));
    }
    if (op.kind == OpKind::Rows) return rows(op, step);
    const int sequence = sequence_of(step, op);
    if (sequence < 0)
      add_new(op, step);
    else
      add_to_family(op, step, sequence);
  }

  /// `item 2 of x`: a view.
  void slice(const Op& op) {
    const Ref& source = refs_[size_t(op.operands[0])];
    if (source.kind != Ref::Kind::Array || !op.from || op.from->base != kNoValue)
      throw NoKernelError("row slice", "a place that moves", value(op.result).name,
                          "only fixed rows of computed arrays");
    Ref view = source;
    view.row += op.from->offset - 1;
    view.shape = value(op.result).shape;
    refs_[size_t(op.result)] = view;
  }

  /// Consecutive values of the only row: a view, where vector loads may still begin.
  bool is_part_of_a_row(const Op& op) const {
    constexpr int64_t kVectorFloats = 4;
    return cut_.sequences() == 1 && op.kind == OpKind::HeadSlice && op.integer(OptionKey::Heads) == 1 &&
           (op.integer(OptionKey::From) - 1) % kVectorFloats == 0 && value(op.operands[0]).shape.rows == 1 &&
           refs_[size_t(op.operands[0])].kind == Ref::Kind::Array &&
           std::count(graph_.outputs.begin(), graph_.outputs.end(), op.result) == 0;
  }
  void slice_row(const Op& op) {
    Ref view = refs_[size_t(op.operands[0])];
    view.column += op.integer(OptionKey::From) - 1;
    view.shape = value(op.result).shape;
    refs_[size_t(op.result)] = view;
  }

  /// `[a, b]`: a view where the rows lie one below the other already, else a copy of each.
  void rows(const Op& op, const StepOp& step) {
    Ref all = step.operands.front();
    int64_t next = all.row;
    bool adjacent = all.kind == Ref::Kind::Array;
    for (const Ref& part : step.operands) {
      adjacent &= part.kind == Ref::Kind::Array && part.index == all.index && part.row == next;
      next += part.shape.rows;
    }
    all.shape = value(op.result).shape;
    if (adjacent)
      refs_[size_t(op.result)] = all;
    else
      copy_rows(op, step);
  }

  void copy_rows(const Op& op, const StepOp& step) {
    const Ref whole = new_array(op.result, value(op.result).shape);
    refs_[size_t(op.result)] = whole;
    int64_t row = 0;
    for (const Ref& part : step.operands) {
      StepOp copy = step;
      copy.operands = {part};
      copy.result = whole;
      copy.result.row = row;
      copy.result.shape = part.shape;
      copy.sequences = int(cut_.sequences());
      row += part.shape.rows;
      step_.ops.push_back(copy);
    }
  }

  Ref position_of(const Op& write) const {
    if (!write.from || write.from->base == kNoValue)
      throw NoKernelError("write", "a fixed place", value(write.result).name, "rows are written at a position only");
    return refs_[size_t(write.from->base)];
  }

  Ref table_of(const Op& rotation) const {
    const int table = weights_.rotary(graph_, rotation);
    if (table < 0) throw InternalError("plan: a rotation whose table is not placed");
    return {.kind = Ref::Kind::Weight, .index = table, .shape = weights_.placements[size_t(table)].shape};
  }

  /// The sequence an op of a batch belongs to, -1 where it is of all: it reads one sequence's state, position or rows.
  int sequence_of(const StepOp& step, const Op& op) const {
    if (cut_.sequences() == 1) return 0;
    int sequence =
        op.result != kNoValue && value(op.result).kind == ValueKind::Carried ? refs_[size_t(op.result)].sequence : -1;
    for (const Ref& ref : step.operands) {
      const int its = ref.kind == Ref::Kind::Array ? sequence_of_rows(ref) : ref.sequence;
      if (its < 0) continue;
      if (sequence >= 0 && its != sequence)
        throw NoKernelError(std::string(op_name(op.kind)), "batch", value(op.result).name, "reads two sequences");
      sequence = its;
    }
    return sequence;
  }

  int sequence_of_rows(const Ref& ref) const {
    const int64_t all = step_.arrays[size_t(ref.index)].shape.rows;
    if (ref.shape.rows * cut_.sequences() != all || ref.row % ref.shape.rows != 0) return -1;
    return int(ref.row / ref.shape.rows);
  }

  void add_new(const Op& op, StepOp step) {
    step.sequences = int(cut_.sequences());
    step.result = result_of(op, value(op.result).shape);
    if (value(op.result).kind == ValueKind::Computed) refs_[size_t(op.result)] = step.result;
    step_.ops.push_back(step);
  }

  /// Operands and result as the whole family's: all sequences' rows.
  void add_to_family(const Op& op, StepOp step, int sequence) {
    for (Ref& ref : step.operands) widen(ref);
    Shape shape = value(op.result).shape;
    if (value(op.result).kind == ValueKind::Computed) shape.rows *= cut_.sequences();
    const int at = family(signature(step) + " > " + state_text(op), sequence);
    if (at == int(step_.ops.size())) {
      step.result = result_of(op, shape);
      step.sequences = 0;
      step_.ops.push_back(step);
    }
    StepOp& whole = step_.ops[size_t(at)];
    if (sequence > 0) whole.ops.push_back(step.ops.front());
    if (whole.sequences++ != sequence || last_op_[size_t(sequence)] > at)
      throw NoKernelError(std::string(op_name(op.kind)), "batch", value(op.result).name,
                          "stands in another order than for the sequence before");
    last_op_[size_t(sequence)] = at;
    if (value(op.result).kind != ValueKind::Computed) return;
    Ref mine = whole.result;
    mine.shape = value(op.result).shape;
    mine.row += sequence * mine.shape.rows;
    refs_[size_t(op.result)] = mine;
  }

  std::string state_text(const Op& op) const {
    return value(op.result).kind == ValueKind::Carried ? fmt::format("{}", refs_[size_t(op.result)].index) : "";
  }

  void widen(Ref& ref) const {
    ref.sequence = -1;
    if (ref.kind != Ref::Kind::Array || sequence_of_rows(ref) < 0) return;
    ref.row = 0;
    ref.shape.rows *= cut_.sequences();
  }

  /// The op that the sequence's next op of this signature belongs to; the number of ops where it starts a family.
  int family(const std::string& text, int sequence) {
    std::vector<int>& members = families_[text];
    size_t& taken = taken_[{text, sequence}];
    if (taken == members.size()) members.push_back(int(step_.ops.size()));
    return members[taken++];
  }

  Ref result_of(const Op& op, const Shape& shape) {
    if (value(op.result).kind == ValueKind::Computed) return new_array(op.result, shape);
    Ref state = refs_[size_t(op.result)];
    state.sequence = -1;
    return state;
  }

  Ref new_array(ValueId id, const Shape& shape) {
    const std::string& name = value(id).name;
    step_.arrays.push_back({.name = cut_.sequences() > 1 ? split_sequence(name).first : name,
                            .shape = shape,
                            .integers = value(id).integers});
    return {.kind = Ref::Kind::Array, .index = int(step_.arrays.size()) - 1, .shape = shape};
  }

  void require_all_sequences(const StepOp& op) const {
    if (op.sequences == cut_.sequences()) return;
    throw NoKernelError(std::string(op_name(op.kind)), "batch", value(graph_.ops[size_t(op.ops[0])].result).name,
                        "is not said for every sequence");
  }

  void mark_output(ValueId id) {
    const Ref& ref = refs_[size_t(id)];
    if (ref.kind != Ref::Kind::Array)
      throw NoKernelError("show", std::string(to_text(cut_.identity.kind)), value(id).name, "is not computed");
    StepArray& array = step_.arrays[size_t(ref.index)];
    array.kind = array.integers ? StepArray::Kind::Next : StepArray::Kind::Logits;
  }

  const Cut& cut_;
  const StepGraph& graph_;
  const Weights& weights_;
  const States places_;
  Step step_;
  std::vector<Ref> refs_;  // of each value
  std::map<std::string, std::vector<int>> families_;
  std::map<std::pair<std::string, int>, size_t> taken_;
  std::vector<int> last_op_;  // of each sequence
};

}  // namespace

bool StepOp::has(OptionKey key) const {
  return std::any_of(options.begin(), options.end(), [&](const auto& o) { return o.first == key; });
}
double StepOp::option(OptionKey key, double otherwise) const {
  for (const auto& [name, value] : options)
    if (name == key) return value;
  return otherwise;
}
int64_t StepOp::integer(OptionKey key, int64_t otherwise) const { return int64_t(option(key, double(otherwise))); }

Step fold(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options, const Chip& chip) {
  return Folder(cut, graph, weights, options, chip).run();
}

}  // namespace lane
