// Patterns over a step's ops, as text: `sum(p:matrix product(W, x), b)`. A word with arguments is an op, any other a
// variable; a repeated variable means the same array. `label:` names an op for the rule. `a(…); b(…)` is several ops
// that share variables, and `a(…) -> x; b(x)` the case that one reads the other's result, which others may read too.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "7_plan/step.h"

namespace lane {

struct PatternNode {
  std::string label, word, result;
  bool is_op = false;
  std::vector<PatternNode> args;
};
/// The roots. Throws InternalError for text that is no pattern.
std::vector<PatternNode> parse_pattern(std::string_view text);

/// What a pattern was matched with.
struct Match {
  std::map<std::string, Ref, std::less<>> values;  // by variable
  std::map<std::string, int, std::less<>> ops;     // by label: indices into Step::ops
  std::vector<int> matched;                        // all matched ops' indices, roots last
};

/// Finds patterns in one step.
class Matcher {
 public:
  explicit Matcher(const Step& step);
  /// The pattern with its first root at op `at`; nothing where it does not match. Inner values have no other reader and
  /// are no output.
  std::optional<Match> match(const std::vector<PatternNode>& roots, int at) const;
  /// Ops that read the array.
  int readers(int array) const { return readers_[size_t(array)]; }

 private:
  bool match_op(const PatternNode& node, int at, Match& match) const;
  bool match_args(const PatternNode& node, const std::vector<const Ref*>& operands, Match& match) const;
  bool match_arg(const PatternNode& node, const Ref& ref, Match& match) const;
  bool match_roots(const std::vector<PatternNode>& roots, size_t next, Match& match) const;

  const Step& step_;
  std::vector<int> producer_, readers_;  // of each array; -1: none or several
};

/// "matrix product", "products": what patterns call an op. Any of the four gates is also a "gate".
bool is_called(const StepOp& op, std::string_view word);

}  // namespace lane
