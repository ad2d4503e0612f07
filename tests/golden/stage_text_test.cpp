// The texts of the first stages, whole: what a checkpoint is as numbers, and what its step is in LOGOS.
#include <gtest/gtest.h>

#include "lane/gguf.h"
#include "lane/program.h"
#include "lane/spec.h"
#include "support/files.h"
#include "support/golden_case.h"
#include "support/golden_text.h"

namespace lane::test {
namespace {

ModelSpec spec_of(const std::string& name, int64_t ctx) {
  const TempFolder folder;
  Options options;
  options.ctx = ctx;
  return describe_model(read_checkpoint(write_case(load_case(name), folder.path())), options);
}

class StageText : public testing::TestWithParam<const char*> {};

TEST_P(StageText, SpecIsUnchanged) {
  const ModelSpec spec = spec_of(std::string(GetParam()) + "-f32", 64);
  verify(spec);
  expect_golden(std::string("spec/") + GetParam() + ".golden", to_text(spec));
}

TEST_P(StageText, DecodeCutIsUnchanged) {
  const ModelProgram program = author(spec_of(std::string(GetParam()) + "-f32", 64));
  verify(program);
  const Cut decode = cut(program, FormKind::Decode, 1);
  verify(decode, program);
  expect_golden(std::string("logos/") + GetParam() + ".lg", to_text(decode));
}

INSTANTIATE_TEST_SUITE_P(Models, StageText, testing::Values("llama", "qwen2", "qwen3", "gemma3"),
                         [](const auto& model) { return std::string(model.param); });

TEST(StageTextOfForms, CutsAndTheUncutProgramAreUnchanged) {
  const ModelProgram program = author(spec_of("qwen2-f32", 64));
  expect_golden("logos/qwen2_program.txt", to_text(program));
  for (const auto& [kind, rows] : {std::pair(FormKind::Prefill, 4), std::pair(FormKind::Batch, 2)}) {
    const Cut form = cut(program, kind, rows);
    verify(form, program);
    expect_golden("logos/qwen2_" + form.tag() + ".lg", to_text(form));
  }
}

}  // namespace
}  // namespace lane::test
