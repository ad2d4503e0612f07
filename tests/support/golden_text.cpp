#include "support/golden_text.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/files.h"

namespace lane::test {

void expect_golden(std::string_view name, std::string_view text) {
  const Path path = test_path("golden") / name;
  const char* update = std::getenv("LANE_UPDATE_GOLDENS");
  if (update && std::string_view(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    write_file(path, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing: LANE_UPDATE_GOLDENS=1 writes it";
  EXPECT_EQ(read_file(path), text) << "differs from " << path << ": LANE_UPDATE_GOLDENS=1 rewrites it";
}

}  // namespace lane::test
