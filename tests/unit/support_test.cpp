// Whether a checkpoint compiles: every reason at once, and the same verdict as the compiler's.
#include "lane/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lane/compile.h"
#include "lane/error.h"
#include "support/golden_case.h"
#include "support/recipe.h"
#include "support/recipe_edits.h"

namespace lane::test {
namespace {

using nlohmann::json;

json recipe_of(const std::string& name) { return load_case(name).recipe; }

Support support_of(const json& recipe) {
  const TempFolder folder;
  write_checkpoint(recipe, folder / "model.gguf");
  Options options;
  options.chip = "host";
  return support(folder / "model.gguf", options);
}

/// One reason, and no other, has each of these parts.
void expect_reasons(const Support& found, const std::vector<std::string>& parts) {
  EXPECT_EQ(found.reasons.size(), parts.size()) << to_text(found);
  for (const std::string& part : parts)
    EXPECT_EQ(std::count_if(found.reasons.begin(), found.reasons.end(),
                            [&](const std::string& reason) { return reason.find(part) != std::string::npos; }),
              1)
        << part << " in\n"
        << to_text(found);
}

Support::Tensor tensor_of(const Support& found, const std::string& name) {
  for (const Support::Tensor& t : found.tensors)
    if (t.name == name) return t;
  ADD_FAILURE() << name;
  return {};
}

void set_type(json& recipe, const std::string& name, const std::string& type) {
  tensor(recipe, name)["type"] = type;
  tensor(recipe, name)["fill"] = {{"kind", "blocks"}, {"scales", json::array()}};
}

TEST(Support, EveryTensorOfASoundCheckpointIsRead) {
  const Support found = support_of(recipe_of("llama-f32"));
  expect_reasons(found, {});
  EXPECT_TRUE(found.whole);
  for (const Support::Tensor& t : found.tensors) EXPECT_EQ(t.use, Support::Tensor::Use::Read) << t.name;
  const std::string text = to_text(found);
  EXPECT_NE(text.find("tensor blk.1.attn_q.weight: F32, read\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\ncompiles\n")) << text;
}

TEST(Support, EveryReasonAtOnce) {
  json recipe = recipe_of("llama-f32");
  drop_tensor(recipe, "blk.0.attn_k.weight");
  drop_tensor(recipe, "blk.1.ffn_up.weight");
  tensor(recipe, "output_norm.weight")["shape"] = {255};
  set_type(recipe, "blk.0.attn_q.weight", "IQ2_XS");
  add_tensor(recipe, "blk.1.extra.weight", {4});
  add_tensor(recipe, "another", {4});
  set_key(recipe, "llama.new_scale", "f32", 2.0);
  set_key(recipe, "tokenizer.ggml.model", "str", "unheard-of");
  const Support found = support_of(recipe);
  expect_reasons(found,
                 {"no tensor 'blk.0.attn_k.weight'", "no tensor 'blk.1.ffn_up.weight'", "Shape: 'output_norm.weight'",
                  "Format: tensor 'blk.0.attn_q.weight' is IQ2_XS", "tensor 'blk.1.extra.weight', which",
                  "tensor 'another', which", "'llama.new_scale'", "tokenizer.ggml.model is 'unheard-of'"});
  EXPECT_TRUE(found.whole);
  EXPECT_EQ(tensor_of(found, "another").use, Support::Tensor::Use::Unread);
  EXPECT_FALSE(tensor_of(found, "blk.0.attn_q.weight").computed);
  EXPECT_EQ(tensor_of(found, "output_norm.weight").shape, Support::Tensor::Shape::Another);
  const std::string text = to_text(found);
  for (const char* line : {"does not compile: 8 reasons\n", "tensor blk.1.attn_q.weight: F32, read\n",
                           "tensor another: F32, refused: the architecture does not use it\n",
                           "tensor output_norm.weight: F32, refused: the metadata gives it another shape\n",
                           "tensor blk.0.attn_q.weight: IQ2_XS, refused: lanec does not compute with this type\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

/// A fault of every kind, in the model's own keys too, and several of each.
TEST(Support, NoReasonHidesAnother) {
  json recipe = recipe_of("llama3-f32");
  drop_key(recipe, "llama.attention.layer_norm_rms_epsilon");
  drop_key(recipe, "llama.context_length");
  set_key(recipe, "llama.rope.freq_base", "u32", 500000);
  set_key(recipe, "llama.attention.causal", "bool", false);
  set_key(recipe, "llama.new_scale", "f32", 2.0);
  tensor(recipe, "blk.0.attn_q.weight")["shape"] = {255, 256};
  tensor(recipe, "blk.1.ffn_down.weight")["shape"] = {256, 511};
  set_type(recipe, "blk.1.attn_v.weight", "IQ2_XS");
  set_type(recipe, "blk.1.ffn_up.weight", "TQ1_0");
  add_tensor(recipe, "blk.1.extra.weight", {4});
  set_key(recipe, "tokenizer.ggml.pre", "str", "unheard-of");
  set_key(recipe, "tokenizer.ggml.eos_token_id", "u32", 100000);
  set_key(recipe, "tokenizer.ggml.add_bos_token", "str", "yes");
  set_key(recipe, "tokenizer.ggml.merges", "arr_str", {"Ġt h", "the"});
  const Support found = support_of(recipe);
  expect_reasons(found, {"'llama.attention.layer_norm_rms_epsilon'", "'llama.context_length'", "'llama.rope.freq_base'",
                         "attention.causal", "'llama.new_scale'", "'blk.0.attn_q.weight'", "'blk.1.ffn_down.weight'",
                         "'blk.1.attn_v.weight' is IQ2_XS", "'blk.1.ffn_up.weight' is TQ1_0", "'blk.1.extra.weight'",
                         "tokenizer.ggml.pre is 'unheard-of'", "'tokenizer.ggml.eos_token_id' 100000",
                         "'tokenizer.ggml.add_bos_token'", "merge 1 is not two pieces"});
  EXPECT_TRUE(found.whole);
}

TEST(Support, FaultsOfAVocabularyAllAtOnce) {
  json recipe = recipe_of("llama-f32");
  for (auto& entry : recipe["metadata"]) {
    if (entry[0] == "tokenizer.ggml.tokens") entry[2][300] = entry[2][301];
    if (entry[0] == "tokenizer.ggml.token_type") entry[2][7] = 9;
    if (entry[0] == "tokenizer.ggml.scores") entry[2].erase(0);
  }
  set_key(recipe, "tokenizer.ggml.bos_token_id", "u32", 512);
  set_key(recipe, "tokenizer.ggml.eot_token_id", "f32", 2.0);
  expect_reasons(support_of(recipe),
                 {"tokens 300 and 301 are the same text", "token 7 has type 9", "'tokenizer.ggml.scores' of 511",
                  "'tokenizer.ggml.bos_token_id' 512", "tokenizer.ggml.eot_token_id"});
}

TEST(Support, AnUnknownTokenizerHidesNoFaultOfWhatOthersHaveToo) {
  json recipe = recipe_of("llama3-f32");
  set_key(recipe, "tokenizer.ggml.model", "str", "unheard-of");
  set_key(recipe, "tokenizer.ggml.pre", "u32", 3);
  set_key(recipe, "tokenizer.ggml.merges", "arr_i32", {1, 2});
  set_key(recipe, "tokenizer.ggml.bos_token_id", "u32", 100000);
  expect_reasons(support_of(recipe), {"tokenizer.ggml.model is 'unheard-of'", "'tokenizer.ggml.pre' of type u32",
                                      "'tokenizer.ggml.merges' of type array of i32; expected an array of strings",
                                      "'tokenizer.ggml.bos_token_id' 100000"});
}

/// What only the planner refuses is looked for whatever the vocabulary lacks.
TEST(Support, AVocabularyHidesNoReasonOfThePlanner) {
  json recipe = recipe_of("llama-f32");
  drop_key(recipe, "tokenizer.ggml.scores");
  const TempFolder folder;
  write_checkpoint(recipe, folder / "model.gguf");
  Options options;
  options.chip = "host";
  options.mem_bytes = 900;
  expect_reasons(support(folder / "model.gguf", options), {"Memory: needs", "tokenizer.ggml.scores"});
}

/// Sizes that are not known are held against no tensor; those of other parts are.
TEST(Support, ShapesAreJudgedWhereTheirSizesAreKnown) {
  json recipe = recipe_of("llama-f32");
  set_key(recipe, "llama.attention.head_count", "str", "four");
  tensor(recipe, "blk.0.ffn_up.weight")["shape"] = {512, 255};
  tensor(recipe, "blk.1.attn_q.weight")["shape"] = {256, 255};
  tensor(recipe, "blk.1.attn_k.weight")["shape"] = {128, 255};
  const Support found = support_of(recipe);
  // Of blk.1.attn_q the columns are known.
  expect_reasons(found, {"llama.attention.head_count", "Shape: 'blk.0.ffn_up.weight'",
                         "Shape: 'blk.1.attn_q.weight': declared ? x 256 by the metadata, bound 256 x 255",
                         "Shape: 'blk.1.attn_k.weight'"});
  EXPECT_EQ(tensor_of(found, "blk.0.attn_output.weight").shape, Support::Tensor::Shape::Unknown);
  const std::string text = to_text(found);
  EXPECT_NE(text.find("tensor blk.0.attn_output.weight: F32, not known: a key that says its shape is refused\n"),
            std::string::npos)
      << text;
}

TEST(Support, EveryKeyOfTheModelThatIsMissing) {
  json recipe = recipe_of("llama-f32");
  for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.attention.layer_norm_rms_epsilon"})
    drop_key(recipe, key);
  add_tensor(recipe, "blk.1.extra.weight", {4});
  const Support found = support_of(recipe);
  expect_reasons(found, {"llama.block_count", "llama.embedding_length", "llama.attention.layer_norm_rms_epsilon",
                         "blk.1.extra.weight"});
  EXPECT_EQ(tensor_of(found, "blk.1.ffn_up.weight").use, Support::Tensor::Use::Read);
}

TEST(Support, ATypeThatIsNotComputedWithIsAReasonWhateverElseIsWrong) {
  json recipe = recipe_of("llama-f32");
  drop_key(recipe, "llama.attention.layer_norm_rms_epsilon");
  set_type(recipe, "blk.0.ffn_up.weight", "IQ2_XS");
  expect_reasons(support_of(recipe), {"layer_norm_rms_epsilon", "blk.0.ffn_up.weight"});
  set_architecture(recipe, "unheard-of");
  expect_reasons(support_of(recipe), {"architecture 'unheard-of'", "blk.0.ffn_up.weight"});
}

TEST(Support, AReasonOfEveryLayerIsSaidOnce) {
  json recipe = recipe_of("llama-f32");
  set_key(recipe, "llama.rope.scaling.type", "str", "dynamic");
  drop_tensor(recipe, "blk.1.ffn_norm.weight");
  const Support found = support_of(recipe);
  expect_reasons(found, {"'llama.rope.scaling.type' = 'dynamic'", "no tensor 'blk.1.ffn_norm.weight'"});
}

TEST(Support, AnUnknownArchitectureHidesItsTensorsUse) {
  json recipe = recipe_of("llama-f32");
  set_architecture(recipe, "bert");
  set_key(recipe, "tokenizer.ggml.model", "str", "bert");
  const Support found = support_of(recipe);
  expect_reasons(found, {"architecture 'bert'", "tokenizer.ggml.model is 'bert'"});
  EXPECT_EQ(tensor_of(found, "output.weight").use, Support::Tensor::Use::Unknown);
  EXPECT_NE(to_text(found).find("2 reasons; what reads the tensors is not known\n"), std::string::npos);
}

TEST(Support, TensorsLeftOutAreNoReason) {
  json recipe = recipe_of("qwen35-f32");
  set_key(recipe, "qwen35.block_count", "u32", 5);
  set_key(recipe, "qwen35.nextn_predict_layers", "u32", 1);
  add_tensor(recipe, "blk.4.nextn.eh_proj.weight", {8, 8});
  add_tensor(recipe, "v.blk.0.attn_q.weight", {8, 8});
  const Support found = support_of(recipe);
  expect_reasons(found, {});
  EXPECT_EQ(tensor_of(found, "blk.4.nextn.eh_proj.weight").use, Support::Tensor::Use::LeftOut);
  EXPECT_EQ(tensor_of(found, "v.blk.0.attn_q.weight").use, Support::Tensor::Use::LeftOut);
  const TempFolder folder;
  write_checkpoint(recipe, folder / "model.gguf");
  EXPECT_EQ(left_out_text(read_checkpoint(folder / "model.gguf")),
            "left out: 1 nextn block at the end, for multi-token prediction\n"
            "left out: blk.4.nextn.eh_proj.weight, of a nextn block, which predicts further tokens\n"
            "left out: v.blk.0.attn_q.weight, of a vision tower\n");
  const std::string text = to_text(found);
  for (const char* line : {"left out: 1 nextn block at the end, for multi-token prediction\n",
                           "tensor blk.4.nextn.eh_proj.weight: F32, left out: of a nextn block, which predicts",
                           "tensor v.blk.0.attn_q.weight: F32, left out: of a vision tower\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

/// A file may have any name; a reason is a line.
void expect_printable_reasons(const json& recipe, size_t count) {
  const TempFolder folder;
  write_checkpoint(recipe, folder / "mo\ndel\x1b.gguf");
  const Support found = support(folder / "mo\ndel\x1b.gguf", {});
  EXPECT_EQ(found.reasons.size(), count) << to_text(found);
  for (const std::string& reason : found.reasons) {
    EXPECT_EQ(reason.find_first_of("\n\x1b"), std::string::npos) << reason;
    EXPECT_NE(reason.find("mo\\x0adel\\x1b.gguf"), std::string::npos) << reason;
  }
}

TEST(Support, ReasonsSayThePathInPrintableBytes) {
  json recipe = recipe_of("llama-f32");
  drop_tensor(recipe, "blk.0.attn_k.weight");
  tensor(recipe, "output_norm.weight")["shape"] = {255};
  add_tensor(recipe, "another", {4});
  set_key(recipe, "tokenizer.ggml.model", "str", "unheard-of");
  expect_printable_reasons(recipe, 4);
  set_key(recipe, "llama.attention.layer_norm_rms_epsilon", "f32", -1.0);
  set_key(recipe, "tokenizer.ggml.model", "str", "gpt2");
  set_key(recipe, "tokenizer.ggml.pre", "str", "unheard-of");
  expect_printable_reasons(recipe, 6);
}

/// The first reason is the one that the compiler gives.
TEST(Support, AgreesWithTheCompiler) {
  for (const auto& [name, missing] : {std::pair{"qwen3moe-f32", "blk.0.ffn_gate_inp.weight"},
                                      {"gptoss-f32", "blk.0.attn_sinks.weight"},
                                      {"deepseek2-f32", "blk.1.attn_k_b.weight"}}) {
    json recipe = recipe_of(name);
    drop_tensor(recipe, missing);
    const TempFolder folder;
    write_checkpoint(recipe, folder / "model.gguf");
    Options options;
    options.chip = "host";
    const Support found = support(folder / "model.gguf", options);
    ASSERT_FALSE(found.reasons.empty()) << name;
    try {
      compile(folder / "model.gguf", options);
      ADD_FAILURE() << name << " compiles";
    } catch (const Error& error) {
      EXPECT_EQ(found.reasons.front(), error.what());
    }
  }
}

}  // namespace
}  // namespace lane::test
