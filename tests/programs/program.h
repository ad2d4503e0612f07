// An emitted program of the build, beside its checkpoint and sidecar.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "process.h"

namespace lane::test {

/// Of the build, or of the folder that LANE_PROGRAMS in the environment names.
inline std::string program_path(const std::string& name) {
  const char* folder = std::getenv("LANE_PROGRAMS");
  return std::string(folder ? folder : LANE_PROGRAMS) + "/" + name;
}

inline std::string joined(const std::vector<int>& ids) { return fmt::format("{}", fmt::join(ids, ",")); }

/// On the checkpoint beside it: the path in its sidecar may be another machine's.
inline Outcome run_program(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> line{program_path(name)};
  if (options.empty() || options[0] != "-m") line.insert(line.end(), {"-m", program_path(name + ".gguf")});
  line.insert(line.end(), options.begin(), options.end());
  return run_process(line);
}

/// The line of --json, of a run that must succeed.
inline nlohmann::json run_json(const std::string& name, std::vector<std::string> options) {
  options.push_back("--json");
  const Outcome outcome = run_program(name, options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json{};
}

}  // namespace lane::test
