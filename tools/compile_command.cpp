#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>

#include "commands.h"
#include "lane/emit.h"
#include "lane/error.h"
#include "output.h"

namespace lane::tools {
namespace fs = std::filesystem;

namespace {

constexpr std::array kStages = {"gguf",     "spec",  "logos", "graph",     "weights", "plan",
                                "branches", "arena", "rules", "residence", "cu"};

/// The asked-for product is made: nothing after it need be.
struct Found {
  std::string text;
};

std::string read_text(const std::string& path) {
  if (fs::is_directory(path)) throw IoError(fmt::format("{}: is a folder", printable(path)));
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) throw IoError(fmt::format("{}: cannot be read", printable(path)));
  return text;
}

std::string logos_text(const CompileArguments& arguments) {
  if (arguments.from_logos.empty()) return "";
  const std::string text = read_text(arguments.from_logos);
  if (text.empty()) throw UsageError(fmt::format("{}: an empty text is no step", printable(arguments.from_logos)));
  return text;
}

/// "2" before "16" before "b4".
struct ByRows {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto key = [](const std::string& tag) { return std::tuple(tag.starts_with('b'), tag.size(), tag); };
    return key(a) < key(b);
  }
};

std::string stage_text(const CompileArguments& arguments) {
  if (std::find(kStages.begin(), kStages.end(), arguments.emit) == kStages.end()) {
    throw UsageError(fmt::format("stage '{}'; accepted are {}", printable(arguments.emit), fmt::join(kStages, ", ")));
  }
  // A form that was named must be one of this compile's also where the product is that of all forms.
  std::set<std::string, ByRows> forms;
  std::optional<std::string> whole;
  const StageHook hook = [&](std::string_view stage, std::string_view tag, const std::function<std::string()>& text) {
    if (!tag.empty()) forms.emplace(tag);
    if (stage != arguments.emit) return;
    if (tag.empty() ? arguments.form == kFirstForm : tag == arguments.form) throw Found{text()};
    if (tag.empty()) whole = text();
  };
  try {
    const Lane lane = compile(arguments.model, arguments.options, logos_text(arguments), hook);
    if (arguments.emit == "cu") whole = to_text(emit(lane));
  } catch (Found& found) {
    return std::move(found.text);
  }
  if (whole && (arguments.form == kFirstForm || forms.count(arguments.form))) return *whole;
  throw UsageError(fmt::format("form '{}'; this compile makes {}", printable(arguments.form), fmt::join(forms, ", ")));
}

/// model.cu has model.lane beside it.
fs::path sidecar_path(const CompileArguments& arguments) {
  if (!arguments.sidecar.empty()) return arguments.sidecar;
  if (arguments.output == "-") return {};
  fs::path path = arguments.output;
  if (path.extension() == ".cu") return path.replace_extension(".lane");
  return path += ".lane";
}

void check_paths(const CompileArguments& arguments, const fs::path& sidecar) {
  if (arguments.output.empty()) throw UsageError("no output: give -o FILE, --emit STAGE or --dry-run");
  for (const std::string& input : {arguments.model, arguments.from_logos}) {
    if (arguments.output != "-") check_output(arguments.output, input);
    if (!sidecar.empty()) check_output(sidecar, input);
  }
  if (fs::path(arguments.output) == sidecar) throw UsageError("output and sidecar are one file");
}

void write_program(const CompileArguments& arguments, const Program& program, const fs::path& sidecar) {
  OutputFiles files;
  if (!sidecar.empty()) {
    files.add(sidecar, {reinterpret_cast<const char*>(program.sidecar.data()), program.sidecar.size()});
  }
  if (arguments.output != "-") files.add(arguments.output, program.cu);
  files.commit();
  if (arguments.output == "-") print(program.cu);
}

}  // namespace

void compile_command(const CompileArguments& arguments) {
  if (!arguments.emit.empty()) {
    const std::string text = stage_text(arguments);
    if (arguments.output.empty() || arguments.output == "-") return print(text);
    check_output(arguments.output, arguments.model);
    OutputFiles files;
    files.add(arguments.output, text);
    return files.commit();
  }
  const fs::path sidecar = sidecar_path(arguments);
  if (!arguments.dry_run) check_paths(arguments, sidecar);
  const Lane lane = compile(arguments.model, arguments.options, logos_text(arguments));
  const Program program = emit(lane);
  verify(program);
  if (arguments.dry_run) return print(to_text(lane.residence, lane.weights));
  write_program(arguments, program, sidecar);
  if (sidecar.empty()) std::cerr << "lanec: no sidecar written: give --sidecar FILE\n";
}

}  // namespace lane::tools
