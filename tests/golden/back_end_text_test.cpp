// The passes after planning on a small model: their texts, to the byte, and what an emitted text may never hold.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "lane/emit.h"
#include "lane/error.h"
#include "support/expect_error.h"
#include "support/golden_case.h"
#include "support/golden_text.h"
#include "support/recipe.h"

namespace lane::test {
namespace {

Options plain_options() {
  Options options;
  options.prefill = 1;
  options.activations = Activations::F32;
  return options;
}

/// The part of the .cu that is this model's: the embedded files have their own tests.
std::string model_part(const std::string& cu) { return cu.substr(cu.find("// ---- this model\n")); }

class BackEndText : public ::testing::Test {
 protected:
  TempFolder folder_;
  std::map<std::string, std::string, std::less<>> texts_;  // by stage, of the decode form

  Lane compile_case(const nlohmann::json& recipe) {
    write_checkpoint(recipe, folder_ / "m.gguf");
    return compile(folder_ / "m.gguf", plain_options(), "",
                   [&](std::string_view stage, std::string_view, const std::function<std::string()>& text) {
                     texts_[std::string(stage)] = text();
                   });
  }
  Lane llama() { return compile_case(load_case("llama-f32").recipe); }
};

TEST_F(BackEndText, StagesAreUnchanged) {
  llama();
  for (const char* stage : {"branches", "arena", "residence"}) {
    expect_golden(std::string(stage) + "/llama-f32.txt", texts_.at(stage));
  }
}

TEST_F(BackEndText, TheModelsPartOfTheProgramIsUnchanged) {
  const Program program = emit(llama());
  verify(program);
  expect_golden("emit/llama-f32.txt", model_part(program.cu));
}

TEST_F(BackEndText, StringsOfTheCheckpointAreNowhereInTheText) {
  nlohmann::json recipe = load_case("llama-f32").recipe;
  const std::string hostile = "zebra */ \"\n#include <zebra> \\";
  for (nlohmann::json& entry : recipe.at("metadata")) {
    if (entry[0] == "general.name") entry[2] = hostile;
    if (entry[0] == "tokenizer.ggml.tokens") entry[2][300] = hostile;
  }
  const Program program = emit(compile_case(recipe));
  verify(program);
  EXPECT_EQ(program.cu.find("zebra"), std::string::npos);
}

TEST_F(BackEndText, DamagedProgramsFail) {
  const Program good = emit(llama());
  const auto refuse = [&](const std::string& part, const std::string& more) {
    Program damaged = good;
    damaged.cu += more;
    expect_error<InternalError>(part, [&] { verify(damaged); });
  };
  refuse("not closed", "int f() {\n");
  refuse("closes nothing", "}\n");
  refuse("an include is left", "\n#include \"quant/q4_k.cuh\"\n");
  refuse("a namespace is left", "namespace LANE_NAMESPACE {}\n");
  refuse("byte 0x07", std::string("// \a\n"));
  refuse("byte 0xc3", "// caf\xc3\xa9\n");
  Program without = good;
  without.sidecar.clear();
  expect_error<InternalError>("no sidecar", [&] { verify(without); });
}

}  // namespace
}  // namespace lane::test
