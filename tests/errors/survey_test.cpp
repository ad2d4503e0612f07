// One fault at a time, in every key and every tensor of every golden checkpoint: a survey says that one and no other,
// as a compile does.
#include <gtest/gtest.h>

#include "lane/error.h"
#include "lane/spec.h"
#include "support/golden_case.h"

namespace lane::test {
namespace {

std::string refusal_of(const Checkpoint& checkpoint) {
  try {
    describe_model(checkpoint, {});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

class SurveyCase : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { sound_ = read_checkpoint(write_case(load_case(GetParam()), folder_.path())); }

  /// The survey of `damaged` has one refusal at most, the compiler's, and it has `part`. Whether it has one.
  static bool expect_alone(const Checkpoint& damaged, std::string_view part) {
    const std::vector<std::string> found = survey_model(damaged, {}).refusals;
    EXPECT_EQ(found.empty() ? "" : found.front(), refusal_of(damaged));
    if (found.empty()) return false;
    EXPECT_EQ(found.size(), 1u) << part << "\n" << found.front() << "\n" << found.back();
    EXPECT_NE(found.front().find(part), std::string::npos) << part << " in " << found.front();
    return true;
  }

  TempFolder folder_;
  Checkpoint sound_;
};

TEST_P(SurveyCase, AKeyOfAnotherType) {
  int refused = 0;
  for (size_t i = 0; i < sound_.metadata.size(); ++i) {
    Checkpoint damaged = sound_;
    MetaEntry& entry = damaged.metadata[i];
    if (entry.key.starts_with("general.") || entry.key.starts_with("tokenizer.")) continue;
    const bool text = entry.type == MetaType::String;
    entry.type = text ? MetaType::Bool : MetaType::String;
    entry.value = text ? MetaValue(true) : MetaValue("another");
    refused += expect_alone(damaged, entry.key);
  }
  EXPECT_GE(refused, 5);
}

TEST_P(SurveyCase, ATensorOfAnotherShape) {
  const std::vector<std::string> names = survey_model(sound_, {}).left_out;
  const Survey::Names left_out(names.begin(), names.end());
  for (size_t i = 0; i < sound_.tensors.size(); ++i) {
    if (left_out.contains(sound_.tensors[i].name)) continue;
    Checkpoint damaged = sound_;
    damaged.tensors[i].ne[0] += 1;
    EXPECT_TRUE(expect_alone(damaged, damaged.tensors[i].name)) << damaged.tensors[i].name;
  }
}

std::vector<std::string> float_cases() {
  std::vector<std::string> names = case_names();
  std::erase_if(names, [](const std::string& name) { return !name.ends_with("-f32"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, SurveyCase, testing::ValuesIn(float_cases()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace lane::test
