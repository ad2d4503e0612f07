// The planner's table of kernels against the kernels themselves.
#include <gtest/gtest.h>

#include <set>

#include "kernels/kernel_registry.h"
#include "lane/plan.h"

namespace lane::test {
namespace {

/// "float* out, const float* x" is "float*, const float*".
std::string types_of(std::string_view parameters) {
  std::string types;
  while (!parameters.empty()) {
    const size_t comma = parameters.find(", ");
    const std::string_view one = parameters.substr(0, comma);
    types += (types.empty() ? "" : ", ") + std::string(one.substr(0, one.rfind(' ')));
    parameters = comma == std::string_view::npos ? "" : parameters.substr(comma + 2);
  }
  return types;
}

std::string without_arguments(const std::string& name) { return name.substr(0, name.find('<')); }

TEST(KernelTable, DeclaresTheParametersThatTheFilesDeclare) {
  for (const std::string& name : registered_kernel_names())
    EXPECT_EQ(types_of(kernel(without_arguments(name)).parameters), registered_kernel(name).types) << name;
}

TEST(KernelTable, HasNoRowThatTestsDoNotCompile) {
  std::set<std::string> compiled;
  for (const std::string& name : registered_kernel_names()) compiled.insert(without_arguments(name));
  for (const Kernel& row : kernels()) EXPECT_TRUE(compiled.contains(std::string(row.name))) << row.name;
}

}  // namespace
}  // namespace lane::test
