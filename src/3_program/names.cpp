#include <fmt/format.h>

#include <algorithm>

#include "lane/program.h"

namespace lane {
namespace {

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::string constant_name(std::string_view tensor) {
  std::string block;
  if (tensor.starts_with("blk.")) {
    const size_t dot = tensor.find('.', 4);
    block = fmt::format("_{}", tensor.substr(4, dot - 4));
    tensor = tensor.substr(dot == tensor.npos ? tensor.size() : dot + 1);
  }
  const bool bias = take_suffix(tensor, ".bias");
  if (!bias) take_suffix(tensor, ".weight");
  std::string name(tensor);
  std::replace(name.begin(), name.end(), '.', '_');
  return name + (bias ? "_bias" : "") + block;
}

}  // namespace lane
