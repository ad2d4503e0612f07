// The commands of lanec, each taking what its command line said. They throw; only main catches.
#pragma once
#include <string>
#include <vector>

#include "lane/options.h"

namespace lane::tools {

/// The decode step, which every compile makes.
inline constexpr const char* kFirstForm = "1";

struct CompileArguments {
  std::string model, output, sidecar, emit, form = kFirstForm, from_logos;
  bool dry_run = false;
  Options options;
};

/// Writes the program and its sidecar, or prints one stage's product.
void compile_command(const CompileArguments& arguments);
/// Compiles into PROGRAM.cu and PROGRAM.lane, and has nvcc or the C++ compiler build PROGRAM.
void build_command(const CompileArguments& arguments);

struct InspectArguments {
  std::string model, pre;
  bool json = false, support = false;
};

/// Returns the exit code: with `support`, whether the checkpoint compiles.
int inspect_command(const InspectArguments& arguments);

/// `words`: the command line after the command; runtime/command_line.h reads it, as it does an emitted program's.
void tokenize_command(const std::vector<std::string>& words);
void run_command(const std::vector<std::string>& words);

/// Writes to standard output. Throws IoError where that fails.
void print(const std::string& text);

}  // namespace lane::tools
