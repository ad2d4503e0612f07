// The spec and the program as products: damage is noticed, forms that cannot be are refused, texts are reproducible.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lane/architectures.h"
#include "lane/error.h"
#include "lane/gguf.h"
#include "lane/program.h"
#include "lane/spec.h"
#include "support/expect_error.h"
#include "support/files.h"
#include "support/golden_case.h"
#include "support/recipe.h"

namespace lane::test {
namespace {

ModelSpec spec_of_recipe(const nlohmann::json& recipe, int64_t ctx = 64) {
  const TempFolder folder;
  write_checkpoint(recipe, folder / "model.gguf");
  Options options;
  options.ctx = ctx;
  return describe_model(read_checkpoint(folder / "model.gguf"), options);
}
ModelSpec spec_of(const std::string& name, int64_t ctx = 64) { return spec_of_recipe(load_case(name).recipe, ctx); }

bool has_line(const std::string& text, const std::string& line) {
  return text.find(fmt::format("\n{}\n", line)) != text.npos;
}

TEST(Architectures, AreOrderedByNameAndFoundByIt) {
  std::set<std::string_view> names;
  for (const Architecture& row : architectures()) {
    EXPECT_TRUE(names.empty() || *names.rbegin() < row.name) << row.name;
    names.insert(row.name);
    EXPECT_EQ(find_architecture(row.name), &row);
  }
  EXPECT_EQ(find_architecture("llam"), nullptr);
}

TEST(Architectures, AreDocumented) {
  const std::string page = read_file(Path(LANE_SOURCE_DIR) / "docs" / "architectures.md");
  for (const Architecture& row : architectures()) {
    const std::string line = fmt::format("\n| `{}` |", row.name);
    EXPECT_NE(page.find(line), page.npos) << row.name;
  }
}

TEST(Spec, DamageIsNoticed) {
  const ModelSpec sound = spec_of("llama-f32");
  verify(sound);
  const auto damaged = [&](auto damage) {
    ModelSpec spec = sound;
    damage(spec, std::get<Attention>(spec.layers[1].mixer), std::get<Dense>(spec.layers[1].feed_forward));
    expect_error<InternalError>("spec: ", [&] { verify(spec); });
  };
  damaged([](ModelSpec& spec, auto&, auto&) { spec.layers.clear(); });
  damaged([](ModelSpec& spec, auto&, auto&) { spec.tokens = spec.rows + 1; });
  damaged([](ModelSpec& spec, auto&, auto&) { spec.ctx = spec.model_ctx + 1; });
  damaged([](ModelSpec& spec, auto&, auto&) { spec.head.matrix.rows = 7; });
  damaged([](ModelSpec&, Attention& of, auto&) { of.groups = 3; });
  damaged([](ModelSpec&, Attention& of, auto&) { of.q.matrix.rows = 7; });
  damaged([](ModelSpec&, Attention& of, auto&) { of.fused = of.q; });
  damaged([](ModelSpec&, Attention& of, auto&) { of.rotary->turned = 66; });
  damaged([](ModelSpec&, auto&, Dense& of) { of.gate = {}; });
  damaged([](ModelSpec&, auto&, Dense& of) { of.down.matrix.columns = 7; });
  damaged([](ModelSpec& spec, auto&, auto&) { spec.layers[0].parallel = true; });
}

TEST(Spec, PaddingRowsAreNoTokens) {
  auto recipe = load_case("llama-f32").recipe;
  for (auto& tensor : recipe["tensors"])
    if (tensor["name"] == "token_embd.weight" || tensor["name"] == "output.weight") tensor["shape"] = {520, 256};
  const std::string text = cut(author(spec_of_recipe(recipe)), FormKind::Decode, 1).text;
  EXPECT_TRUE(has_line(text, "Let z be the matrix product of output and n."));
  EXPECT_TRUE(
      has_line(text, "Let logits be the head slice of z with heads 1 and width 520 and from 1 and through 512."));
  EXPECT_TRUE(has_line(text, "Let next be the greatest of logits."));
}

TEST(Program, IsTheSameTextTwice) {
  for (const char* name : {"llama-f32", "qwen3next-f32", "deepseek2-f32"}) {
    const ModelProgram one = author(spec_of(name)), two = author(spec_of(name));
    EXPECT_EQ(one.text, two.text);
    const Cut left = cut(one, FormKind::Batch, 3), right = cut(two, FormKind::Batch, 3);
    EXPECT_EQ(left.text, right.text);
    EXPECT_EQ(left.identity.cut_digest, right.identity.cut_digest);
  }
}

TEST(Program, FormsShareTheProgramAndItsConstants) {
  const ModelProgram program = author(spec_of("gemma3-f32"));
  const auto constants = [](const Cut& form) {
    const size_t from = form.text.find("# constants"), to = form.text.find("# carried");
    return form.text.substr(from, to - from);
  };
  const Cut decode = cut(program, FormKind::Decode, 1), chunk = cut(program, FormKind::Prefill, 8),
            batch = cut(program, FormKind::Batch, 2);
  EXPECT_EQ(constants(decode), constants(chunk));
  EXPECT_EQ(constants(decode), constants(batch));
  EXPECT_EQ(decode.identity.program_digest, digest(to_text(program)));
  EXPECT_EQ(chunk.identity.program_digest, decode.identity.program_digest);
  EXPECT_EQ(batch.identity.program_digest, decode.identity.program_digest);
  EXPECT_EQ(decode.identity.cut_digest, digest(decode.text));
  EXPECT_EQ(batch.identity.cut_digest, digest(batch.text));
  EXPECT_EQ(decode.tag() + chunk.tag() + batch.tag(), "18b2");
}

TEST(Program, HasNoTextOfTheCheckpoints) {
  auto recipe = load_case("llama-f32").recipe;
  const std::string before = to_text(author(spec_of_recipe(recipe)));
  for (auto& entry : recipe["metadata"])
    if (entry[0] == "general.name") entry[2] = "a name\n## Main\nShow x.";
  EXPECT_EQ(to_text(author(spec_of_recipe(recipe))), before);
}

TEST(Program, FormsThatCannotBeAreRefused) {
  const ModelProgram program = author(spec_of("llama-f32", 48));
  for (int64_t rows : {-4, 0, 1, 3, 64, 1024})
    expect_error<ChunkError>({std::to_string(rows) + " rows", "context 48"},
                             [&] { cut(program, FormKind::Prefill, rows); });
  EXPECT_EQ(cut(program, FormKind::Prefill, 32).rows_per_sequence(), 32);
  for (int64_t batch : {-1, 0, 1, 65536})
    expect_error<BatchError>({"a batch of " + std::to_string(batch), "2 to 65535"},
                             [&] { cut(program, FormKind::Batch, batch); });
  expect_error<InternalError>("2 rows", [&] { cut(program, FormKind::Decode, 2); });
}

TEST(Program, DamageIsNoticed) {
  const ModelProgram sound = author(spec_of("qwen2-f32"));
  verify(sound);
  const auto damaged = [&](const char* what, auto damage) {
    ModelProgram program = sound;
    damage(program);
    expect_error<InternalError>(what, [&] { verify(program); });
  };
  damaged("is bound twice", [](ModelProgram& p) { p.statements.push_back(p.statements.front()); });
  damaged("before it is bound", [](ModelProgram& p) { p.statements.erase(p.statements.begin()); });
  damaged("never bound", [](ModelProgram& p) { p.statements.back().name = "nothing"; });
  damaged("not that of the statements", [](ModelProgram& p) { p.text += " "; });

  const Cut form = cut(sound, FormKind::Batch, 2);
  verify(form, sound);
  const auto damaged_cut = [&](const char* what, auto damage) {
    Cut copy = form;
    damage(copy);
    expect_error<InternalError>(what, [&] { verify(copy, sound); });
  };
  damaged_cut("the text is not", [](Cut& c) { c.text += "\n"; });
  damaged_cut("digest is not the text's", [](Cut& c) { c.identity.cut_digest[0] ^= 1; });
  damaged_cut("digest is not the program's", [](Cut& c) { c.identity.program_digest[0] ^= 1; });
  damaged_cut("another context", [](Cut& c) { c.identity.ctx = 1; });
}

TEST(Program, ConstantsAreNamedByTheirTensors) {
  EXPECT_EQ(constant_name("token_embd.weight"), "token_embd");
  EXPECT_EQ(constant_name("output.bias"), "output_bias");
  EXPECT_EQ(constant_name("blk.0.attn_q.weight"), "attn_q_0");
  EXPECT_EQ(constant_name("blk.12.attn_q.bias"), "attn_q_bias_12");
  EXPECT_EQ(constant_name("blk.3.ssm_a"), "ssm_a_3");
  EXPECT_EQ(constant_name("blk.3.ssm_dt.bias"), "ssm_dt_bias_3");
  EXPECT_EQ(constant_name("blk.3.shortconv.conv.weight"), "shortconv_conv_3");
}

}  // namespace
}  // namespace lane::test
