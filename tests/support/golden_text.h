// Texts that are compared whole with files of tests/golden/.
#pragma once
#include <string_view>

namespace lane::test {

/// Expects `text` to equal tests/golden/<name> to the byte. With LANE_UPDATE_GOLDENS=1 in the environment it writes the
/// file instead: read the diff.
void expect_golden(std::string_view name, std::string_view text);

}  // namespace lane::test
