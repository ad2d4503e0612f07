// Other programs, run by a test.
#pragma once
#include <string>
#include <vector>

#include "support/files.h"

namespace lane::test {

struct Outcome {
  int code = 0;  // exit code; 128 + the signal where one ended it
  std::string out, err;
};

/// Runs `line` (its first word a path), in `folder` where one is given.
Outcome run_process(const std::vector<std::string>& line, const Path& folder = {});

}  // namespace lane::test
