// Golden cases: a small checkpoint as a recipe and what llama.cpp computes with it. tests/golden/cases/ holds them.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/files.h"

namespace lane::test {

/// Names of the cases that start with `prefix`, in order: "llama-f32".
std::vector<std::string> case_names(std::string_view prefix = "");

/// The highest logits of one position, highest first, and the log of the sum of all exponentials.
struct TopLogits {
  std::vector<int> ids;
  std::vector<double> logits;
  double log_sum = 0;
};

struct GoldenCase {
  std::string name;
  nlohmann::json recipe;                           // see support/recipe.h; null where the checkpoint is a real one
  std::vector<int> prompt_ids, greedy_ids;         // the first greedy id is predicted at the last prompt position
  std::vector<TopLogits> top8;                     // one a position: the prompt's, then the greedy ids' but the last;
                                                   // of real checkpoints the sixteen highest
  std::map<int, std::vector<double>> full_logits;  // by position
};
GoldenCase load_case(const std::string& name);
GoldenCase read_case(const Path& path);

/// Writes the case's checkpoint as <name>.gguf into `folder`; returns its path.
Path write_case(const GoldenCase& golden, const Path& folder);

}  // namespace lane::test
