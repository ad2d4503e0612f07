#include <fmt/format.h>

#include <map>

#include "lane/plan.h"

namespace lane {
namespace {

std::string_view io_name(Io io) {
  switch (io) {
    case Io::Tokens:
      return "tokens";
    case Io::Positions:
      return "positions";
    case Io::Slots:
      return "slots";
    case Io::Next:
      return "next";
    case Io::Turns:
      return "turns";
    case Io::Shown:
      return "shown";
  }
  return "";
}

std::string at(uint64_t offset) { return offset ? fmt::format("+{}", offset) : ""; }

struct ArgText {
  const Schedule& schedule;
  const Weights& weights;
  std::string operator()(const BufferArg& a) const {
    return schedule.buffers[size_t(a.buffer)].name + at(a.byte_offset);
  }
  std::string operator()(const WeightArg& a) const { return weights.placements[size_t(a.placement)].name; }
  std::string operator()(const StateArg& a) const { return schedule.states[size_t(a.state)].name; }
  std::string operator()(const IoArg& a) const { return std::string(io_name(a.io)); }
  std::string operator()(const LogitsArg& a) const { return "logits" + at(a.byte_offset); }
  std::string operator()(const NullArg&) const { return "null"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
};

std::string dim_text(const Dim3& d) {
  if (d.z != 1) return fmt::format("{}x{}x{}", d.x, d.y, d.z);
  return d.y != 1 ? fmt::format("{}x{}", d.x, d.y) : fmt::format("{}", d.x);
}

std::string launch_text(const Launch& launch, const ArgText& arg_text) {
  std::string text{launch.kernel->name};
  if (!launch.template_arguments.empty()) text += fmt::format("<{}>", fmt::join(launch.template_arguments, ", "));
  text += fmt::format(" {} of {}", dim_text(launch.grid), dim_text(launch.block));
  if (launch.shared_bytes) text += fmt::format(", {} bytes shared", launch.shared_bytes);
  std::vector<std::string> args;
  for (const Arg& arg : launch.args) args.push_back(std::visit(arg_text, arg));
  return text + fmt::format(": {}\n", fmt::join(args, ", "));
}

/// "4 in 31 layers, 5 in 1".
std::string layers_text(const std::vector<int>& layer_launches) {
  std::map<int, int> layers;  // by their launches
  for (const int launches : layer_launches) layers[launches]++;
  std::vector<std::string> groups;
  for (const auto& [launches, count] : layers)
    groups.push_back(fmt::format("{} in {} layer{}", launches, count, count == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(groups, ", "));
}

}  // namespace

std::string to_text(const Schedule& schedule, const Weights& weights) {
  std::string text = fmt::format("{}: {} sequences of {} rows, {} launches, logits {} x {}\n", to_text(schedule.kind),
                                 schedule.sequences, schedule.rows_per_sequence, schedule.launches.size(),
                                 schedule.logit_rows, schedule.vocabulary);
  if (!schedule.layer_launches.empty()) text += fmt::format("launches: {}\n", layers_text(schedule.layer_launches));
  for (const Fired& f : schedule.fired) text += fmt::format("rule {}: {} times\n", f.rule, f.times);
  for (const State& s : schedule.states)
    text += fmt::format("state {}: {} {}, {} bytes at {}\n", s.name, to_text(s.shape), s.type, s.bytes, s.offset);
  text += fmt::format("state of a sequence: {} bytes\n", schedule.state_stride);
  for (const Buffer& b : schedule.buffers) text += fmt::format("buffer {}: {} bytes\n", b.name, b.bytes);
  for (const Launch& launch : schedule.launches) text += launch_text(launch, ArgText{schedule, weights});
  return text;
}

}  // namespace lane
