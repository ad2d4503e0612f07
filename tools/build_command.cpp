#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "commands.h"
#include "lane/chip.h"
#include "lane/error.h"
#include "output.h"

namespace lane::tools {
namespace fs = std::filesystem;

namespace {

/// `variable` of the environment, or the first of `names` that is a program.
std::string compiler(const char* variable, const std::vector<std::string>& names) {
  if (const char* chosen = std::getenv(variable); chosen && *chosen) return chosen;
  const char* path = std::getenv("PATH");
  for (const std::string& name : names) {
    if (name[0] == '/' && ::access(name.c_str(), X_OK) == 0) return name;
    std::string_view rest = path ? path : "";
    while (!rest.empty()) {
      const std::string folder(rest.substr(0, rest.find(':')));
      if (::access((folder + "/" + name).c_str(), X_OK) == 0) return name;
      rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    }
  }
  throw IoError(fmt::format("no {} found to build with; {} names one", names.front(), variable));
}

std::vector<std::string> build_line(const Chip& chip, const std::string& source, const std::string& program) {
  if (chip.gencode.empty()) {
    return {compiler("CXX", {"g++", "c++", "clang++"}),
            "-std=c++17",
            "-O3",
            "-march=native",
            "-ffp-contract=off",  // kernels say where a multiplication and an addition are one: bits depend on it
            "-x",
            "c++",
            source,
            "-o",
            program,
            "-pthread",
            "-lboost_context"};
  }
  return {compiler("CUDACXX", {"nvcc", "/usr/local/cuda/bin/nvcc"}),
          "-std=c++17",
          "-O3",
          "-gencode",
          std::string(chip.gencode),
          source,
          "-o",
          program};
}

void run(const std::vector<std::string>& line) {
  std::cerr << fmt::format("lanec: {}\n", fmt::join(line, " "));
  std::vector<char*> arguments;
  for (const std::string& word : line) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ)) {
    throw IoError(fmt::format("{}: {}", line[0], std::strerror(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return;
  throw IoError(fmt::format("{} failed ({} {})", line[0], WIFEXITED(status) ? "status" : "signal",
                            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
}

}  // namespace

void build_command(const CompileArguments& arguments) {
  if (arguments.output.empty() || arguments.output == "-") throw UsageError("build needs -o PROGRAM");
  check_output(arguments.output, arguments.model);
  CompileArguments source = arguments;
  source.output = arguments.output + ".cu";
  const Chip* chip = find_chip(arguments.options.chip);
  // Found before the work, so that a missing compiler is said at once; an unknown chip is refused by the compile.
  std::vector<std::string> line;
  OutputFiles files;
  const std::string program = files.reserve(arguments.output).string();
  if (chip) line = build_line(*chip, source.output, program);
  compile_command(source);
  run(line);
  files.commit();
}

}  // namespace lane::tools
