// The planner's table of kernels against the kernels themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/kernel_registry.h"
#include "lane/embedded.h"
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

/// The body of a kernel in its file: from its parameters to the brace in column 0.
std::string_view body_of(const Kernel& row) {
  const auto file = std::find_if(embedded_files().begin(), embedded_files().end(),
                                 [&](const EmbeddedFile& f) { return f.path == row.file; });
  if (file == embedded_files().end()) return {};
  const std::string_view text = file->text;
  std::string wanted(row.name);
  wanted.insert(0, 1, ' ').push_back('(');
  size_t at = text.find("__global__");
  for (; at != std::string_view::npos; at = text.find("__global__", at + 1)) {
    const size_t body = text.find(") {\n", at), name = text.find(wanted, at);
    if (name < body) return text.substr(body, text.find("\n}\n", body) - body);
  }
  return {};
}

TEST(KernelTable, EveryKernelMayBeLaunchedDependently) {
  for (const Kernel& row : kernels()) {
    const std::string_view body = body_of(row);
    EXPECT_TRUE(body.find("follow_producer();") < body.size() || body.find("admit_consumer();") < body.size())
        << row.name << " in " << row.file;
  }
}

}  // namespace
}  // namespace lane::test
