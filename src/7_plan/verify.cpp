#include <fmt/format.h>

#include <limits>
#include <optional>
#include <set>

#include "lane/error.h"
#include "lane/plan.h"

namespace lane {
namespace {

/// One parameter of a kernel, as its row of the table declares it.
struct Parameter {
  bool pointer = false, constant = false;
  std::string_view type;  // "int", "float", "int64_t" where it is no pointer
};

std::vector<Parameter> parameters_of(std::string_view declaration) {
  std::vector<Parameter> parameters;
  while (!declaration.empty()) {
    const size_t comma = declaration.find(", ");
    const std::string_view one = declaration.substr(0, comma);
    Parameter p;
    p.pointer = one.find('*') != std::string_view::npos;
    p.constant = one.starts_with("const ");
    p.type = one.substr(0, one.find(' '));
    parameters.push_back(p);
    declaration = comma == std::string_view::npos ? "" : declaration.substr(comma + 2);
  }
  return parameters;
}

class Verifier {
 public:
  Verifier(const Schedule& schedule, const Weights& weights) : schedule_(schedule), weights_(weights) {}

  void run() {
    verify_states();
    for (launch_ = 0; launch_ < schedule_.launches.size(); launch_++) verify_launch(schedule_.launches[launch_]);
    require(logits_written_, "no launch writes the logits");
  }

 private:
  void require(bool holds, const std::string& what) const {
    if (holds) return;
    const std::string where = launch_ < schedule_.launches.size() && schedule_.launches[launch_].kernel
                                  ? fmt::format("launch {} ({})", launch_, schedule_.launches[launch_].kernel->name)
                                  : "the schedule";
    throw InternalError(fmt::format("plan: {}: {}", where, what));
  }

  void verify_states() const {
    uint64_t end = 0;
    for (const State& s : schedule_.states) {
      require(s.offset % 256 == 0, fmt::format("state '{}' is not 256-aligned", s.name));
      require(s.offset >= end, fmt::format("state '{}' overlaps the one before", s.name));
      end = s.offset + s.bytes;
    }
    require(schedule_.state_stride >= end, "a sequence's state is longer than the stride");
  }

  void verify_launch(const Launch& launch) {
    require(launch.kernel != nullptr, "has no kernel");
    require(
        launch.grid.x > 0 && launch.grid.y > 0 && launch.grid.y <= 65535 && launch.grid.z > 0 && launch.grid.z <= 65535,
        "has an impossible grid");
    require(launch.block.x > 0 && launch.block.x <= 1024 && launch.block.x % 32 == 0 && launch.block.y == 1,
            "has an impossible block");
    const std::vector<Parameter> parameters = parameters_of(launch.kernel->parameters);
    require(parameters.size() == launch.args.size(),
            fmt::format("takes {} arguments and is given {}", parameters.size(), launch.args.size()));
    for (size_t i = 0; i < parameters.size(); i++) verify_kind(parameters[i], launch.args[i], i);
    for (const Arg& arg : launch.args) verify_read(arg);
    for (const Arg& arg : launch.args) note_write(arg);
    for (size_t i = 0; i < parameters.size(); i++)
      if (std::holds_alternative<LogitsArg>(launch.args[i]) && !parameters[i].constant) logits_written_ = true;
  }

  void verify_kind(const Parameter& p, const Arg& arg, size_t index) const {
    const std::string name = fmt::format("argument {}", index);
    if (const int64_t* value = std::get_if<int64_t>(&arg)) {
      require(!p.pointer && p.type != "float", name + " should not be an integer");
      require(p.type == "int64_t" ||
                  (*value >= std::numeric_limits<int32_t>::min() && *value <= std::numeric_limits<int32_t>::max()),
              name + " does not fit an int");
    } else if (std::holds_alternative<double>(arg)) {
      require(!p.pointer && p.type == "float", name + " should not be a real");
    } else {
      require(p.pointer, name + " should not be an array");
      const std::optional<Access> access = access_of(arg);
      require(!access || p.constant == (*access == Access::Read),
              name + " is read and written unlike its pointer says");
    }
  }

  /// Nothing where the parameter alone says it: a null pointer, the logits.
  static std::optional<Access> access_of(const Arg& arg) {
    if (const auto* a = std::get_if<BufferArg>(&arg)) return a->access;
    if (const auto* a = std::get_if<StateArg>(&arg)) return a->access;
    if (const auto* a = std::get_if<IoArg>(&arg)) return a->access;
    if (std::holds_alternative<WeightArg>(arg)) return Access::Read;
    return std::nullopt;
  }

  void verify_read(const Arg& arg) const {
    if (const auto* a = std::get_if<BufferArg>(&arg)) {
      require(a->buffer >= 0 && size_t(a->buffer) < schedule_.buffers.size(), "names no buffer");
      const Buffer& buffer = schedule_.buffers[size_t(a->buffer)];
      require(a->byte_offset < buffer.bytes, fmt::format("starts behind the end of '{}'", buffer.name));
      require(a->byte_offset % sizeof(float) == 0, fmt::format("starts within a value of '{}'", buffer.name));
      require(a->access == Access::Write || written_.contains(a->buffer),
              fmt::format("reads '{}', which nothing wrote", buffer.name));
    }
    if (const auto* a = std::get_if<WeightArg>(&arg))
      require(a->placement >= 0 && size_t(a->placement) < weights_.placements.size(),
              "reads a constant without a place");
    if (const auto* a = std::get_if<StateArg>(&arg))
      require(a->state >= 0 && size_t(a->state) < schedule_.states.size(), "names no state");
    if (const auto* a = std::get_if<IoArg>(&arg))
      require(a->io != Io::Next || a->access == Access::Write || next_written_,
              "reads the next token before it is chosen");
    if (const auto* a = std::get_if<LogitsArg>(&arg))
      require(a->byte_offset < uint64_t(schedule_.logit_rows * schedule_.vocabulary) * sizeof(float),
              "starts behind the end of the logits");
  }

  void note_write(const Arg& arg) {
    if (const auto* a = std::get_if<BufferArg>(&arg))
      if (a->access != Access::Read) written_.insert(a->buffer);
    if (const auto* a = std::get_if<IoArg>(&arg)) next_written_ |= a->io == Io::Next && a->access != Access::Read;
  }

  const Schedule& schedule_;
  const Weights& weights_;
  size_t launch_ = std::numeric_limits<size_t>::max();
  std::set<int> written_;
  bool next_written_ = false, logits_written_ = false;
};

}  // namespace

void verify(const Schedule& schedule, const Weights& weights) { Verifier(schedule, weights).run(); }

}  // namespace lane
