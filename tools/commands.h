// The commands of lanec, each taking what its command line said. They throw; only main catches.
#pragma once
#include <string>

#include "lane/options.h"

namespace lane::tools {

struct CompileArguments {
  std::string model, output, sidecar, emit, form, from_logos;
  bool dry_run = false;
  Options options;
};

/// Writes the program and its sidecar, or prints one stage's product.
void compile_command(const CompileArguments& arguments);
/// Compiles into PROGRAM.cu and PROGRAM.lane, and has nvcc or the C++ compiler build PROGRAM.
void build_command(const CompileArguments& arguments);

void inspect_command(const std::string& model, bool json);

struct TokenizeArguments {
  std::string model, text, file, pre;
  bool text_given = false;
  bool no_special = false, no_bos = false;
};
void tokenize_command(const TokenizeArguments& arguments);

/// Writes to standard output. Throws IoError where that fails.
void print(const std::string& text);

}  // namespace lane::tools
