#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lane/chip.h"
#include "lane/error.h"
#include "lane/head.h"
#include "launch_text.h"
#include "parts.h"

namespace lane {
namespace {

/// Dynamic shared memory that a kernel may use on every GPU without asking.
constexpr uint32_t kUsualSharedBytes = 48 << 10;

std::string dimensions(const Dim3& d) {
  if (d.z > 1) return fmt::format("dim3({}, {}, {})", d.x, d.y, d.z);
  if (d.y > 1) return fmt::format("dim3({}, {})", d.x, d.y);
  return fmt::format("dim3({})", d.x);
}

std::string kernel_name(const Launch& launch) {
  std::string name(launch.kernel->name);
  for (size_t i = 0; i < launch.template_arguments.size(); ++i) {
    name += (i == 0 ? "<" : ", ") + launch.template_arguments[i];
  }
  return launch.template_arguments.empty() ? name : name + ">";
}

/// Prints an argument. Numbers keep the kind they have in the Schedule; the kernel's parameter converts them.
struct ArgPrinter {
  const Lane& lane;
  const Form& form;
  std::optional<Head> head = {};  // in its function, the row is a parameter

  std::string operator()(const BufferArg& a) const {
    if (head && a.buffer == head->buffer) {
      return fmt::format("m.arena({} + row * {})", form.arena.offset[size_t(a.buffer)], head->row_bytes);
    }
    return fmt::format("m.arena({})", form.arena.offset[size_t(a.buffer)] + a.byte_offset);
  }
  std::string operator()(const WeightArg& a) const {
    if (lane.weights.placements[size_t(a.placement)].is_matrix()) return fmt::format("s.matrix({})", a.placement);
    return fmt::format("m.weights({})", lane.residence.weight_offset[size_t(a.placement)]);
  }
  std::string operator()(const StateArg& a) const {
    return fmt::format("m.state({})", form.schedule.states[size_t(a.state)].offset);
  }
  std::string operator()(const IoArg& a) const {
    constexpr const char* kNames[] = {"tokens", "positions", "slots", "next", "turns", "shown"};
    const bool of_batch = form.schedule.sequences > 1 && (a.io == Io::Turns || a.io == Io::Shown);
    return fmt::format("m.{}{}", of_batch ? "batch_" : "", kNames[int(a.io)]);
  }
  std::string operator()(const LogitsArg& a) const { return fmt::format("m.logits({})", a.byte_offset); }
  std::string operator()(const NullArg&) const { return "nullptr"; }
  std::string operator()(int64_t a) const { return fmt::format("{}", a); }
  std::string operator()(double a) const {
    if (!std::isfinite(a)) throw InternalError(fmt::format("emit: an argument is {}", a));
    const std::string text = fmt::format("{}", float(a) == a ? float(a) : a);
    const bool real = text.find_first_of(".e") != std::string::npos;
    return (real ? text : text + ".0") + (float(a) == a ? "f" : "");
  }
};

/// "h_0, q_0, k_0, v_0": the values that a launch computes.
std::string comment(const Launch& launch, const StepGraph& graph) {
  std::string text;
  for (int i : launch.ops) {
    const int result = graph.ops[size_t(i)].result;
    if (result != kNoValue) text += (text.empty() ? "" : ", ") + graph.value(result).name;
  }
  return text;
}

/// The launches that another stream waits for, and the number of each one's event.
std::map<int, int> events_of(const Form& form) {
  std::map<int, int> events;
  for (const std::vector<int>& after : form.branches.after) {
    for (int a : after) events.emplace(a, 0);
  }
  int next = 0;
  for (auto& [launch, event] : events) event = next++;
  return events;
}

/// The last launch of each stream but the main one, which must wait for it at the end.
std::vector<std::pair<int, int>> open_ends(const Form& form) {
  std::map<int, int> last;
  for (size_t i = 0; i < form.branches.stream.size(); ++i) last[form.branches.stream[i]] = int(i);
  last.erase(0);
  return {last.begin(), last.end()};
}

/// Whether launch `i` may start before the one ahead of it has ended: every kernel waits for that one by itself (note
/// [dependent launches]), and for that one alone.
bool overlaps(const Form& form, const Chip& chip, size_t i) {
  return chip.dependent_launch && i > 0 && form.branches.after[i].empty() &&
         form.branches.stream[i] == form.branches.stream[i - 1];
}

LaunchText launch_text(const Launch& launch, bool overlaps, int stream, const ArgPrinter& printer) {
  LaunchText text{overlaps ? "launch_dependent" : "launch",
                  std::string(launch.kernel->name),
                  fmt::format("{}, {}, {}, {}", dimensions(launch.grid), dimensions(launch.block), launch.shared_bytes,
                              kernel_name(launch)),
                  stream,
                  {}};
  for (const Arg& arg : launch.args) text.args.push_back(std::visit(printer, arg));
  return text;
}

LaunchTexts launch_texts(const Form& form, const Lane& lane) {
  const ArgPrinter printer{lane, form};
  const Chip& chip = *find_chip(lane.options.chip);
  std::vector<LaunchText> texts;
  for (size_t i = 0; i < form.schedule.launches.size(); ++i)
    texts.push_back(launch_text(form.schedule.launches[i], overlaps(form, chip, i), form.branches.stream[i], printer));
  return LaunchTexts(std::move(texts));
}

}  // namespace

std::string step_name(const Form& form) { return "step_" + form.cut.tag(); }

int event_count(const Form& form) { return int(events_of(form).size() + open_ends(form).size()); }

std::string step_function(const Form& form, const Lane& lane) {
  const std::map<int, int> events = events_of(form);
  const LaunchTexts launches = launch_texts(form, lane);
  std::string text = fmt::format("LANE_STEP inline void {}(Step& s, const Memory& m) {{\n", step_name(form));
  text += launches.definitions();
  for (size_t i = 0; i < form.schedule.launches.size(); ++i) {
    const Launch& launch = form.schedule.launches[i];
    const int stream = form.branches.stream[i];
    for (int a : form.branches.after[i]) {
      text += fmt::format("  s.wait({}, {});\n", events.at(a), stream);
    }
    if (const std::string what = comment(launch, form.graph); !what.empty()) text += fmt::format("  // {}\n", what);
    text += "  " + launches.call(i);
    if (events.count(int(i))) text += fmt::format("  s.record({}, {});\n", events.at(int(i)), stream);
  }
  int event = int(events.size());
  for (const auto& [stream, launch] : open_ends(form)) {
    text += fmt::format("  s.record({}, {});\n  s.wait({}, 0);\n", event, stream, event);
    ++event;
  }
  return text + "}\n";
}

std::string head_name(const Form& form) { return head_of(form.schedule) ? "head_" + form.cut.tag() : "nullptr"; }

// Run now and then, and a launch at a time: on one stream.
std::string head_function(const Form& form, const Lane& lane) {
  const std::optional<Head> head = head_of(form.schedule);
  if (!head && form.schedule.kind == FormKind::Prefill) throw InternalError("emit: a chunk without a head");
  if (!head) return "";
  const ArgPrinter printer{lane, form, head};
  std::string text =
      fmt::format("LANE_STEP inline void {}(Step& s, const Memory& m, uint64_t row) {{\n", head_name(form));
  for (int i = head->first; i < head->end; ++i)
    text += "  " + launch_text(form.schedule.launches[size_t(i)], false, 0, printer).line();
  return text + "}\n";
}

std::string prepare_function(const Lane& lane) {
  std::map<std::string, uint32_t> most;
  std::string any;
  for (const Form& form : lane.forms) {
    for (const Launch& launch : form.schedule.launches) {
      uint32_t& bytes = most[kernel_name(launch)];
      bytes = std::max(bytes, launch.shared_bytes);
      any = kernel_name(launch);
    }
  }
  std::string text = "/// Fails where the GPU cannot run the kernels.\ninline cudaError_t prepare() {\n";
  text += fmt::format("  LANE_TRY(has_code({}));\n", any);
  const bool overlaps =
      find_chip(lane.options.chip)->dependent_launch &&
      std::any_of(most.begin(), most.end(), [](const auto& k) { return k.second > kUsualSharedBytes; });
  for (const auto& [kernel, bytes] : most) {
    if (overlaps || bytes > kUsualSharedBytes)
      text += fmt::format("  LANE_TRY(share_memory({}, {}));\n", kernel, bytes);
  }
  return text + "  return cudaSuccess;\n}\n";
}

std::set<std::string> kernel_files(const Lane& lane) {
  std::set<std::string> files;
  for (const Form& form : lane.forms) {
    for (const Launch& launch : form.schedule.launches) {
      files.insert(std::string(launch.kernel->file));
      files.insert(launch.includes.begin(), launch.includes.end());
    }
  }
  for (const Placement& p : lane.weights.placements) {
    if (p.layout != DeviceLayout::Repacked) continue;
    files.insert("layout/repack.cuh");
    files.insert(std::string(find_repacked(*p.format)->file));
  }
  return files;
}

}  // namespace lane
