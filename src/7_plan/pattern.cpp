#include "7_plan/pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "lane/error.h"

namespace lane {
namespace {

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  std::vector<PatternNode> run() {
    std::vector<PatternNode> roots{node()};
    while (take(';')) roots.push_back(node());
    if (at_ != text_.size()) fail();
    return roots;
  }

 private:
  [[noreturn]] void fail() const { throw InternalError(fmt::format("plan: '{}' is no pattern", text_)); }

  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  /// Letters, digits and the spaces between them.
  std::string word() {
    skip_spaces();
    const size_t end = std::min(text_.find_first_of("(),:;", at_), text_.size());
    std::string word(text_.substr(at_, end - at_));
    while (word.ends_with(' ')) word.pop_back();
    at_ = end;
    if (word.empty()) fail();
    return word;
  }

  PatternNode node() {
    PatternNode n;
    n.word = word();
    if (take(':')) {
      n.label = n.word;
      n.word = word();
    }
    if (!take('(')) return n;
    n.is_op = true;
    do n.args.push_back(node());
    while (take(','));
    if (!take(')')) fail();
    if (take('-')) {
      if (!take('>')) fail();
      n.result = word();
    }
    return n;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool is_gate(const StepOp& op) {
  return op.kind == OpKind::SiluGate || op.kind == OpKind::GeluGate || op.kind == OpKind::SigmoidGate ||
         op.kind == OpKind::ClampedGate;
}

}  // namespace

std::vector<PatternNode> parse_pattern(std::string_view text) { return PatternParser(text).run(); }

bool is_called(const StepOp& op, std::string_view word) {
  switch (op.fused) {
    case Fused::None:
      return op_name(op.kind) == word || (word == "gate" && is_gate(op));
    case Fused::Products:
      return word == "products";
    case Fused::GatedProduct:
      return word == "gated product";
    case Fused::AttentionInputs:
      return word == "attention inputs";
    case Fused::Choice:
      return word == "choice";
    case Fused::SplitAttention:
      return word == "split attention";
    case Fused::ChunkAttention:
      return word == "chunk attention";
    case Fused::Routing:
      return word == "routing";
    case Fused::ExpertGate:
      return word == "expert gate";
    case Fused::Convolution:
      return word == "convolution";
    case Fused::Delta:
      return word == "delta";
    case Fused::DeltaChunk:
      return word == "delta chunk";
    case Fused::Chain:
      return word == "chain";
  }
  return false;
}

Matcher::Matcher(const Step& step) : step_(step), producer_(step.arrays.size(), -1), readers_(step.arrays.size(), 0) {
  std::vector<int> writers(step.arrays.size(), 0);
  for (int i = 0; i < int(step.ops.size()); i++) {
    for (const Ref& ref : step.ops[size_t(i)].reads())
      if (ref.kind == Ref::Kind::Array) readers_[size_t(ref.index)]++;
    for (const Ref& ref : step.ops[size_t(i)].writes()) {
      if (ref.kind != Ref::Kind::Array) continue;
      producer_[size_t(ref.index)] = writers[size_t(ref.index)]++ ? -1 : i;
    }
  }
}

std::optional<Match> Matcher::match(const std::vector<PatternNode>& roots, int at) const {
  Match match;
  if (!match_op(roots[0], at, match) || !match_roots(roots, 1, match)) return std::nullopt;
  return match;
}

bool Matcher::match_roots(const std::vector<PatternNode>& roots, size_t next, Match& match) const {
  if (next == roots.size()) return true;
  for (int i = 0; i < int(step_.ops.size()); i++) {
    Match tried = match;
    if (!match_op(roots[next], i, tried) || !match_roots(roots, next + 1, tried)) continue;
    match = tried;
    return true;
  }
  return false;
}

bool Matcher::match_op(const PatternNode& node, int at, Match& match) const {
  const StepOp& op = step_.ops[size_t(at)];
  if (!is_called(op, node.word) || std::count(match.matched.begin(), match.matched.end(), at)) return false;
  std::vector<const Ref*> operands;
  for (const Ref& ref : op.operands) operands.push_back(&ref);
  if (operands.size() != node.args.size()) return false;
  Match tried = match;
  bool found = match_args(node, operands, tried);
  if (!found && (op.kind == OpKind::Sum || op.kind == OpKind::Product)) {  // either order, where the shapes agree
    std::swap(operands[0], operands[1]);
    tried = match;
    found = operands[0]->shape == operands[1]->shape && match_args(node, operands, tried);
  }
  if (found && !node.result.empty()) {
    const auto [bound, is_new] = tried.values.emplace(node.result, op.result);
    found = is_new || bound->second == op.result;
  }
  if (!found) return false;
  match = tried;
  match.matched.push_back(at);
  if (!node.label.empty()) match.ops[node.label] = at;
  return true;
}

bool Matcher::match_args(const PatternNode& node, const std::vector<const Ref*>& operands, Match& match) const {
  for (size_t i = 0; i < node.args.size(); i++)
    if (!match_arg(node.args[i], *operands[i], match)) return false;
  return true;
}

bool Matcher::match_arg(const PatternNode& node, const Ref& ref, Match& match) const {
  if (!node.is_op) {
    const auto [at, is_new] = match.values.emplace(node.word, ref);
    return is_new || at->second == ref;
  }
  if (ref.kind != Ref::Kind::Array) return false;
  const auto array = size_t(ref.index);
  const bool inner = readers_[array] == 1 && step_.arrays[array].kind == StepArray::Kind::Buffer;
  if (!inner || producer_[array] < 0 || step_.ops[size_t(producer_[array])].result != ref) return false;
  return match_op(node, producer_[array], match);
}

}  // namespace lane
