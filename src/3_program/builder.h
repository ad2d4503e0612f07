// Statements of the uncut program, as the author says them.
#pragma once
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lane/ops.h"
#include "lane/program.h"
#include "lane/spec.h"

namespace lane {

using OptionList = std::vector<std::pair<OptionKey, double>>;

class Builder {
 public:
  /// Names that follow belong to this layer: "q" becomes "q_3". -1: to none.
  void enter_layer(int64_t layer) { suffix_ = layer < 0 ? "" : fmt::format("_{}", layer); }
  std::string at(std::string_view base) const { return std::string(base) + suffix_; }

  /// The text's name of a weight; declares it when first asked.
  std::string constant(const Weight& weight);
  std::string carried(std::string_view base, int64_t experts, int64_t rows, int64_t columns);

  /// Let base be the op of operands, for all rows. Returns the name it binds.
  std::string let(std::string_view base, OpKind op, std::vector<std::string> operands, OptionList options = {});
  /// The same for each sequence by itself.
  std::string each(std::string_view base, OpKind op, std::vector<std::string> operands, OptionList options = {});
  std::string lookup(const std::string& name, const std::string& table);
  std::string last(std::string_view base, const std::string& rows);
  void write(const std::string& carried, const std::string& rows);
  void update(const std::string& carried, OpKind op, std::vector<std::string> operands, OptionList options = {});
  void show(const std::string& name);

  /// Declarations, then the step, in the order in which they were said.
  std::vector<ProgramStatement> take();

 private:
  std::string say(ProgramStatement statement);

  std::string suffix_;
  std::set<std::string> declared_;
  std::vector<ProgramStatement> constants_, carried_, step_;
};

}  // namespace lane
