// The kernel files as text, embedded at build time from kernels/.
#pragma once
#include <span>
#include <string_view>

namespace lane {

struct EmbeddedFile {
  std::string_view path;  // relative to kernels/, as in `#include "quant/q4_k.cuh"`
  std::string_view text;
};

/// Every file of kernels/, ordered by path.
std::span<const EmbeddedFile> embedded_files();

}  // namespace lane
