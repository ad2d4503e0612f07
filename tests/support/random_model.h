// Checkpoints nobody made: for any row of the architecture table a recipe whose sizes, options and tensor types a seed
// chooses. What a row allows may be drawn, so that a new row is tried by its being there.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lane/architectures.h"
#include "lane/formats.h"

namespace lane::test {

struct RandomModel {
  nlohmann::json recipe;  // support/recipe.h; without a vocabulary
  int64_t context = 0;    // positions the model was made for
  std::string summary;    // what was drawn, in a line
};

/// Matrices have one of `formats`, the same all over the model, or F32 where its blocks do not divide their rows.
RandomModel random_model(const Architecture& row, uint64_t seed, const std::vector<const Format*>& formats);

}  // namespace lane::test
