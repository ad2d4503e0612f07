// Every kernel that a Schedule may name, compiled once and called without knowing its type.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lane/plan.h"

namespace lane::test {

/// One argument as its parameter takes it: the field that the parameter's type asks for.
struct KernelValue {
  void* pointer = nullptr;
  int64_t integer = 0;
  double real = 0;
};

struct RegisteredKernel {
  std::function<void(const Dim3& grid, const Dim3& block, uint32_t shared_bytes, const KernelValue* values)> launch;
  /// The C++ types of its parameters: "float*, const float*, int".
  std::string types;
};

/// By name and template arguments, "matrix_product<Q4_K>". Throws std::out_of_range where lanec's tests have none.
const RegisteredKernel& registered_kernel(const std::string& name);
std::vector<std::string> registered_kernel_names();

}  // namespace lane::test
