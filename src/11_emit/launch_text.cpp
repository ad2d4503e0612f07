#include "launch_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace lane {
namespace {

/// An integer argument and what stands around it: "m.arena(", "512", ")". Of any other argument all is `before`.
struct Parts {
  std::string before, number, after;
};
Parts parts_of(const std::string& text) {
  constexpr const char* kDigits = "0123456789";
  const size_t open = text.find_last_of('('), begin = open == std::string::npos ? 0 : open + 1;
  const size_t end = begin == 0 ? text.size() : text.size() - 1;
  if (begin == end || text.find_first_not_of(kDigits, begin) < end) return {text, "", ""};
  return {text.substr(0, begin), text.substr(begin, end - begin), text.substr(end)};
}
/// Of offsets, of matrices and of plain numbers.
const char* type_of(const Parts& parts) {
  return parts.before.empty() ? "int64_t" : parts.before == "s.matrix(" ? "int" : "uint64_t";
}

/// What two launches must have in common to share a lambda.
std::string pattern(const LaunchText& launch) {
  std::string text = launch.method + launch.fixed;
  for (const std::string& arg : launch.args) {
    const Parts parts = parts_of(arg);
    text += "|" + parts.before + (parts.number.empty() ? "" : "#") + parts.after;
  }
  return text;
}

}  // namespace

std::string LaunchText::line() const {
  std::string text = fmt::format("s.{}({}, {}", method, stream, fixed);
  for (const std::string& arg : args) text += ", " + arg;
  return text + ");\n";
}

LaunchTexts::LaunchTexts(std::vector<LaunchText> launches)
    : launches_(std::move(launches)), shared_by_(launches_.size(), -1) {
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t i = 0; i < launches_.size(); i++) alike[pattern(launches_[i])].push_back(i);
  std::map<std::string, int> named;
  for (size_t i = 0; i < launches_.size(); i++) {
    const LaunchText& first = launches_[i];
    const std::vector<size_t>& members = alike[pattern(first)];
    if (members.size() < 2 || members.front() != i) continue;
    Shared shared{fmt::format("{}_{}", first.kernel, ++named[first.kernel]), members, {}, false};
    const auto differ = [&](auto of) {
      return std::any_of(members.begin(), members.end(), [&](size_t m) { return of(launches_[m]) != of(first); });
    };
    for (size_t a = 0; a < first.args.size(); a++)
      shared.varies.push_back(differ([a](const LaunchText& l) { return l.args[a]; }));
    shared.streams = differ([](const LaunchText& l) { return l.stream; });
    for (const size_t m : members) shared_by_[m] = int(shared_.size());
    shared_.push_back(std::move(shared));
  }
}

const LaunchTexts::Shared* LaunchTexts::shared_of(size_t i) const {
  return shared_by_[i] < 0 ? nullptr : &shared_[size_t(shared_by_[i])];
}

std::string LaunchTexts::definition(const Shared& shared) const {
  const LaunchText& first = launches_[shared.members.front()];
  std::string parameters = shared.streams ? "int stream" : "", args;
  for (size_t a = 0; a < first.args.size(); a++) {
    const Parts parts = parts_of(first.args[a]);
    if (!shared.varies[a]) {
      args += ", " + first.args[a];
      continue;
    }
    parameters += fmt::format("{}{} a{}", parameters.empty() ? "" : ", ", type_of(parts), a);
    args += fmt::format(", {}a{}{}", parts.before, a, parts.after);
  }
  return fmt::format("  const auto {} = [&]({}) {{\n    s.{}({}, {}{});\n  }};\n", shared.name, parameters,
                     first.method, shared.streams ? "stream" : std::to_string(first.stream), first.fixed, args);
}

std::string LaunchTexts::definitions() const {
  std::string text;
  for (const Shared& shared : shared_) text += definition(shared);
  return text;
}

std::string LaunchTexts::call(size_t i) const {
  const Shared* shared = shared_of(i);
  if (!shared) return launches_[i].line();
  std::string args = shared->streams ? std::to_string(launches_[i].stream) : "";
  for (size_t a = 0; a < launches_[i].args.size(); a++)
    if (shared->varies[a]) args += (args.empty() ? "" : ", ") + parts_of(launches_[i].args[a]).number;
  return fmt::format("{}({});\n", shared->name, args);
}

}  // namespace lane
