#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lane/embedded.h"
#include "lane/error.h"
#include "parts.h"

namespace lane {
namespace {

bool starts_with(std::string_view line, std::string_view start) { return line.substr(0, start.size()) == start; }

/// What stands between the quotes or angle brackets of an include line.
std::string_view included(std::string_view line, char open, char close) {
  const size_t begin = line.find(open), end = line.find(close, begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  return line.substr(begin + 1, end - begin - 1);
}

class Flattener {
 public:
  Flattener(bool host, std::string_view prefix) : host_(host), prefix_(prefix) {
    for (const EmbeddedFile& f : embedded_files()) files_[f.path] = f.text;
  }

  void file(std::string_view path) {
    if (path == "base/namespace.h" || !seen_.insert(std::string(path)).second) return;
    const auto found = files_.find(path);
    if (found == files_.end()) throw InternalError(fmt::format("no kernel file '{}'", path));
    std::string body;
    int depth = 0;  // of #if: what is included under a condition stays where it is
    std::string_view text = found->second;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1);
      line(text.substr(0, end + 1), depth, body);
      text.remove_prefix(end + 1);
    }
    out_ += fmt::format("\n// ---- {}\n{}", path, body);
  }

  /// Headers of the C++ library and of CUDA, then the files.
  std::string take() {
    std::string text;
    for (const std::string& header : headers_) text += fmt::format("#include <{}>\n", header);
    return text + out_;
  }

 private:
  void line(std::string_view line, int& depth, std::string& body) {
    if (starts_with(line, "#if")) ++depth;
    if (starts_with(line, "#endif")) --depth;
    if (starts_with(line, "#pragma once")) return;
    if (!starts_with(line, "#include")) {
      body += named(line);
    } else if (line.find('<') != std::string_view::npos) {
      if (depth == 0) headers_.insert(std::string(included(line, '<', '>')));
      if (depth > 0) body += line;
    } else {
      include(included(line, '"', '"'), depth, body);
    }
  }

  void include(std::string_view path, int depth, std::string& body) {
    if (starts_with(path, "host/") && depth > 0 && !host_) {
      body += "#error \"made for a GPU: build with nvcc, or compile with --chip host\"\n";
    } else if (depth > 0) {
      std::swap(body, out_);  // in place, under its condition
      file(path);
      std::swap(body, out_);
    } else {
      file(path);
    }
  }

  std::string named(std::string_view line) const {
    constexpr std::string_view kName = "LANE_NAMESPACE";
    std::string text(line);
    for (size_t at = 0; (at = text.find(kName, at)) != std::string::npos; at += prefix_.size()) {
      text.replace(at, kName.size(), prefix_);
    }
    return text;
  }

  bool host_;
  std::string prefix_;
  std::map<std::string_view, std::string_view> files_;
  std::set<std::string> seen_, headers_;
  std::string out_;
};

}  // namespace

std::string flatten(const std::set<std::string>& roots, bool host, std::string_view prefix) {
  Flattener flattener(host, prefix);
  for (const std::string& root : roots) flattener.file(root);
  return flattener.take();
}

}  // namespace lane
