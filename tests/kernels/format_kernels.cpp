#include "kernels/format_kernels.h"

#include <stdexcept>
#include <string>

#include "kernels/format_kernels_of.h"

namespace lane::test {

const std::vector<FormatKernels>& format_kernels() {
  static const std::vector<FormatKernels> all = [] {
    std::vector<FormatKernels> rows = small_block_kernels();
    for (const FormatKernels& row : super_block_kernels()) rows.push_back(row);
    return rows;
  }();
  return all;
}

const FormatKernels& format_kernels(std::string_view name) {
  for (const FormatKernels& row : format_kernels()) {
    if (row.name == name) return row;
  }
  throw std::out_of_range("no kernels for format " + std::string(name));
}

}  // namespace lane::test
