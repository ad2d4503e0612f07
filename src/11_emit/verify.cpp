#include <fmt/format.h>

#include <algorithm>

#include "lane/error.h"
#include "parts.h"

namespace lane {
namespace {

/// Skips a literal or a comment at `at`, if one begins there. Returns the first byte after it.
size_t skip_quiet(const std::string& text, size_t at) {
  const char c = text[at];
  if (text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") == 0) return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  // A quote after a digit separates digits (1'000).
  const bool separator = c == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]));
  if ((c != '"' && c != '\'') || separator) return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != c && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

void check_brackets(const std::string& text) {
  constexpr std::string_view kOpen = "([{", kClose = ")]}";
  std::string open;
  for (size_t i = 0; i < text.size();) {
    if (const size_t after = skip_quiet(text, i); after != i) {
      i = after;
      continue;
    }
    const char c = text[i++];
    if (kOpen.find(c) != std::string_view::npos) open += c;
    const size_t kind = kClose.find(c);
    if (kind == std::string_view::npos) continue;
    if (open.empty() || open.back() != kOpen[kind]) throw InternalError(fmt::format("emit: '{}' closes nothing", c));
    open.pop_back();
  }
  if (!open.empty()) throw InternalError(fmt::format("emit: '{}' is not closed", open.back()));
}

}  // namespace

void verify(const Program& program) {
  // Between these marks stand lanec's own files, whose comments may hold UTF-8.
  const size_t own = program.cu.find("\n// ---- "), model = program.cu.find("\n// ---- this model\n");
  for (size_t i = 0; i < program.cu.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(program.cu[i]);
    const bool printable = c == '\n' || (c >= 0x20 && c < 0x7f), utf8 = c >= 0x80 && i > own && i < model;
    if (!printable && !utf8) throw InternalError(fmt::format("emit: byte {:#04x} at {} of the text", c, i));
  }
  if (program.cu.find("\n#include \"") != std::string::npos) throw InternalError("emit: an include is left");
  if (program.cu.find("LANE_NAMESPACE") != std::string::npos) throw InternalError("emit: a namespace is left unnamed");
  check_brackets(program.cu);
  if (program.sidecar.empty()) throw InternalError("emit: no sidecar");
}

std::string to_text(const Program& program) { return program.cu; }

}  // namespace lane
