// The arena of every golden case's forms beside the most bytes that may be live at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "lane/compile.h"
#include "support/golden_case.h"

namespace lane::test {
namespace {

class ArenaForms : public testing::TestWithParam<std::string> {};

TEST_P(ArenaForms, TakesAtMostATenthMoreThanIsLiveAtOnce) {
  const TempFolder folder;
  const Path checkpoint = write_case(load_case(GetParam()), folder.path());
  for (const char* chip : {"sm_90", "sm_75"}) {
    Options options;
    options.chip = chip;
    options.batch = 8;
    for (const Form& form : compile(checkpoint, options).forms) {
      EXPECT_LE(double(form.arena.bytes), 1.1 * double(form.arena.live_bytes)) << chip << ' ' << form.cut.tag();
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cases, ArenaForms, testing::ValuesIn(case_names()), name_of);

}  // namespace
}  // namespace lane::test
