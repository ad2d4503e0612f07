// Checkpoints that a reader takes and that are no model lanec compiles: one change each to a sound one.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lane/error.h"
#include "lane/gguf.h"
#include "lane/spec.h"
#include "support/expect_error.h"
#include "support/files.h"
#include "support/golden_case.h"
#include "support/recipe.h"
#include "support/recipe_edits.h"

namespace lane::test {
namespace {

using nlohmann::json;

ModelSpec describe(const json& recipe, int64_t ctx = 0) {
  const TempFolder folder;
  write_checkpoint(recipe, folder / "model.gguf");
  Options options;
  options.ctx = ctx;
  return describe_model(read_checkpoint(folder / "model.gguf"), options);
}

json recipe_of(const std::string& name) { return load_case(name).recipe; }

TEST(SpecErrors, UnknownArchitecture) {
  json recipe = recipe_of("llama-f32");
  recipe["architecture"] = "bert\nX";
  expect_error<NotYetError>({"architecture 'bert\\x0aX'", "accepted are", "llama, mimo2", "qwen35moe"},
                            [&] { describe(recipe); });
}

TEST(SpecErrors, KnownArchitecturesAreRefusedWithWhatTheyNeed) {
  const std::pair<const char*, const char*> known[] = {
      {"gemma3n", "per-layer embeddings"}, {"gemma4", "per-layer embeddings"}, {"mamba2", "a selective state space"}};
  for (const auto& [name, missing] : known) {
    json recipe = recipe_of("llama-f32");
    set_architecture(recipe, name);
    expect_error<NotYetError>({std::string("architecture '") + name + "', which needs ", missing},
                              [&] { describe(recipe); });
  }
}

TEST(SpecErrors, EachRequiredKeyIsNamedWhereItIsMissing) {
  for (const char* key :
       {"llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    json recipe = recipe_of("llama-f32");
    drop_key(recipe, key);
    expect_error<CheckpointError>({"model.gguf", std::string("no key '") + key + "'"}, [&] { describe(recipe); });
  }
}

TEST(SpecErrors, ExpertsInEveryZerothLayer) {
  json recipe = recipe_of("ernie4_5moe-f32");
  set_key(recipe, "ernie4_5-moe.interleave_moe_layer_step", "u32", 0);
  expect_error<CheckpointError>({"'ernie4_5-moe.interleave_moe_layer_step' = 0"}, [&] { describe(recipe); });
}

TEST(SpecErrors, KeyOfAnotherType) {
  json recipe = recipe_of("llama-f32");
  set_key(recipe, "llama.block_count", "str", "two");
  expect_error<CheckpointError>("llama.block_count", [&] { describe(recipe); });
  recipe = recipe_of("llama-f32");
  set_key(recipe, "llama.rope.freq_base", "u32", 10000);
  expect_error<CheckpointError>("llama.rope.freq_base", [&] { describe(recipe); });
}

TEST(SpecErrors, NumbersOutOfRange) {
  const std::tuple<const char*, const char*, json, const char*> changes[] = {
      {"llama.block_count", "u32", 0, "1 to 512"},
      {"llama.block_count", "u32", 513, "1 to 512"},
      {"llama.block_count", "u32", 4294967295u, "1 to 512"},
      {"llama.attention.head_count", "u32", 0, "1 to"},
      {"llama.attention.head_count_kv", "u32", 3, "a divisor of the 4 heads"},
      {"llama.attention.head_count_kv", "u32", 0, "a divisor of the 4 heads"},
      {"llama.attention.head_count_kv", "arr_i32", {2, 2, 2}, "2 values"},
      {"llama.rope.dimension_count", "u32", 63, "an even number"},
      {"llama.rope.dimension_count", "u32", 66, "at most the 64 values"},
      {"llama.rope.freq_base", "f32", 0.0, "a number over 0"},
      {"llama.rope.scaling.factor", "f32", -2.0, "0 or more"},
      {"llama.attention.layer_norm_rms_epsilon", "f32", 0.0, "a number over 0"},
      {"llama.vocab_size", "u32", 600, "512 rows"},
  };
  for (const auto& [key, type, value, accepted] : changes) {
    json recipe = recipe_of("llama-f32");
    set_key(recipe, key, type, value);
    expect_error<CheckpointError>({std::string(key).substr(6), accepted}, [&] { describe(recipe); });
  }
}

TEST(SpecErrors, MissingTensorsAreNamed) {
  const std::pair<const char*, const char*> tensors[] = {
      {"llama-f32", "token_embd.weight"},
      {"llama-f32", "output_norm.weight"},
      {"llama-f32", "blk.1.attn_q.weight"},
      {"llama-f32", "blk.0.ffn_down.weight"},
      {"qwen2-f32", "blk.0.attn_k.bias"},
      {"qwen3-f32", "blk.1.attn_q_norm.weight"},
      {"gemma3-f32", "blk.6.post_ffw_norm.weight"},
      {"gptoss-f32", "blk.0.attn_sinks.weight"},
      {"deepseek2-f32", "blk.1.attn_k_b.weight"},
      {"qwen35-f32", "blk.0.ssm_a"},
      {"lfm2-f32", "blk.0.shortconv.conv.weight"},
      {"mixtral-f32", "blk.1.ffn_gate_inp.weight"},
      {"phi2-f32", "output.bias"},
  };
  for (const auto& [name, missing] : tensors) {
    json recipe = recipe_of(name);
    drop_tensor(recipe, missing);
    expect_error<CheckpointError>({"model.gguf", std::string("no tensor '") + missing + "'"},
                                  [&] { describe(recipe); });
  }
}

TEST(SpecErrors, ShapesUnlikeTheMetadata) {
  const std::tuple<const char*, const char*, json, const char*, const char*> changes[] = {
      {"llama-f32", "blk.0.attn_q.weight", {256, 255}, "256 x 256 by the metadata", "256 x 255 in "},
      {"llama-f32", "blk.0.attn_k.weight", {256, 256}, "128 x 256 by the metadata", "256 x 256 in "},
      {"llama-f32", "blk.1.ffn_up.weight", {511, 256}, "512 x 256 by the metadata", "511 x 256 in "},
      {"llama-f32", "output_norm.weight", {255}, "256 by the metadata", "255 in "},
      {"llama-f32", "output.weight", {511, 256}, "512 x 256 by the metadata", "511 x 256 in "},
      {"mixtral-f32", "blk.0.ffn_up_exps.weight", {3, 256, 256}, "4 x 256 x 256 by", "3 x 256 x 256 in"},
      {"llama3-f32", "rope_freqs.weight", {33}, "32 by the metadata", "33 in "},
  };
  for (const auto& [name, changed, shape, declared, bound] : changes) {
    json recipe = recipe_of(name);
    tensor(recipe, changed)["shape"] = shape;
    tensor(recipe, changed)["fill"] = {{"kind", "uniform"}, {"mean", 0.0}, {"sd", 1.0}};
    expect_error<ShapeError>({changed, declared, bound, "model.gguf"}, [&] { describe(recipe); });
    try {
      describe(recipe);
    } catch (const ShapeError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::Checkpoint);
    }
  }
}

TEST(SpecErrors, KeysThatWouldChangeTheMathematics) {
  const std::tuple<const char*, const char*, json, const char*> changes[] = {
      {"llama.rope.scaling.type", "str", "dynamic", "'llama.rope.scaling.type' = 'dynamic'; accepted are none, linear"},
      {"llama.attention.sliding_window", "u32", 16, "'llama.attention.sliding_window'"},
      {"llama.logit_scale", "f32", 2.0, "'llama.logit_scale'"},
      {"llama.attn_logit_softcapping", "f32", 30.0, "'llama.attn_logit_softcapping'"},
      {"llama.attention.causal", "bool", false, "attention.causal"},
      {"llama.never\x1b[31m", "u32", 1, "'llama.never\\x1b[31m'"},
  };
  for (const auto& [key, type, value, named] : changes) {
    json recipe = recipe_of("llama-f32");
    set_key(recipe, key, type, value);
    expect_error<NotYetError>(named, [&] { describe(recipe); });
  }
}

TEST(SpecErrors, KeysThatAreSwitchedOffAreFine) {
  json recipe = recipe_of("llama-f32");
  set_key(recipe, "llama.attention.sliding_window", "u32", 0);
  set_key(recipe, "llama.attention.causal", "bool", true);
  set_key(recipe, "llama.rope.scaling.type", "str", "none");
  set_key(recipe, "llama.expert_count", "u32", 0);
  EXPECT_EQ(to_text(describe(recipe)), to_text(describe(recipe_of("llama-f32"))));
}

Attention attention_of(const ModelSpec& spec, size_t layer) { return std::get<Attention>(spec.layers[layer].mixer); }

/// Files say 0 where a model is without the thing.
TEST(SpecErrors, ZeroIsNone) {
  const std::tuple<const char*, const char*, const char*> zeros[] = {
      {"gemma3-f32", "final_logit_softcapping", "f32"}, {"llama-f32", "rope.scaling.factor", "f32"},
      {"llama-f32", "rope.scale_linear", "f32"},        {"gemma3-f32", "rope.scaling.factor", "f32"},
      {"mixtral-f32", "expert_weights_scale", "f32"},   {"starcoder2-f32", "attention.sliding_window", "u32"},
      {"olmo2-f32", "attention.sliding_window", "u32"}, {"olmo2-f32", "attention.sliding_window_pattern", "u32"},
  };
  for (const auto& [name, option, type] : zeros) {
    json recipe = recipe_of(name);
    const std::string text = to_text(describe(recipe));
    set_key(recipe, recipe["architecture"].get<std::string>() + "." + option, type, 0);
    EXPECT_EQ(to_text(describe(recipe)), text) << name << " " << option;
  }
}

TEST(SpecErrors, ZeroIsNoneWhereTheGoldenHasOne) {
  json recipe = recipe_of("gemma2-f32");
  set_key(recipe, "gemma2.attn_logit_softcapping", "f32", 0.0);
  set_key(recipe, "gemma2.final_logit_softcapping", "f32", 0.0);
  EXPECT_EQ(attention_of(describe(recipe), 1).score_cap, 0);
  EXPECT_EQ(describe(recipe).logit_cap, 0);
  recipe = recipe_of("mimo2-f32");
  set_key(recipe, "mimo2.attention.value_scale", "f32", 0.0);
  EXPECT_EQ(attention_of(describe(recipe), 0).value_scale, 1);
  recipe = recipe_of("minicpm-f32");
  set_key(recipe, "minicpm.embedding_scale", "f32", 0.0);
  set_key(recipe, "minicpm.residual_scale", "f32", 0.0);
  EXPECT_EQ(describe(recipe).embedding_scale, 1);
  EXPECT_EQ(describe(recipe).residual_scale, 1);
  recipe = recipe_of("commandr-f32");
  set_key(recipe, "command-r.logit_scale", "f32", 0.0);
  EXPECT_EQ(describe(recipe).logit_scale, 1);
  drop_key(recipe, "command-r.logit_scale");
  EXPECT_EQ(describe(recipe).logit_scale, 1);
}

/// A window of no positions is none only where a model may be without.
TEST(SpecErrors, WindowsOfNoPositions) {
  for (const char* name : {"gemma2-f32", "cohere2-f32", "mimo2-f32", "gptoss-f32", "exaone4_64-f32"}) {
    json recipe = recipe_of(name);
    const std::string key = recipe["architecture"].get<std::string>() + ".attention.sliding_window";
    set_key(recipe, key, "u32", 0);
    expect_error<CheckpointError>({"'" + key + "' = 0", "1 to"}, [&] { describe(recipe); });
  }
  json recipe = recipe_of("gemma3-f32");
  set_key(recipe, "gemma3.attention.sliding_window", "u32", 0);
  EXPECT_EQ(attention_of(describe(recipe), 0).window, 0);
}

/// Layers with a window are not stretched; whether a factor of the magnitude is for them too, a row says.
TEST(SpecErrors, RotaryScalingInWindows) {
  for (const auto& [name, factor] : {std::pair("gemma3-f32", 1.25), std::pair("olmo3-f32", 1.0)}) {
    json recipe = recipe_of(name);
    const std::string architecture = recipe["architecture"];
    set_key(recipe, architecture + ".rope.scaling.type", "str", "linear");
    set_key(recipe, architecture + ".rope.scaling.factor", "f32", 8.0);
    set_key(recipe, architecture + ".rope.scaling.attn_factor", "f32", 1.25);
    const ModelSpec spec = describe(recipe);
    EXPECT_EQ(attention_of(spec, 0).rotary->linear, 1);
    EXPECT_EQ(attention_of(spec, 0).rotary->magnitude, factor) << name;
    const size_t whole = architecture == "gemma3" ? 5 : 3;
    EXPECT_EQ(attention_of(spec, whole).rotary->linear, 8);
    EXPECT_EQ(attention_of(spec, whole).rotary->magnitude, 1.25);
  }
}

TEST(SpecErrors, TheOriginalContextIsTheModelsWhereItIsNotSaid) {
  json recipe = recipe_of("mistral3-f32");
  drop_key(recipe, "mistral3.rope.scaling.original_context_length");
  EXPECT_EQ(attention_of(describe(recipe), 0).temperature->length, 2048);
}

TEST(SpecErrors, RoutingThatIsNotKnown) {
  json recipe = recipe_of("deepseek2-f32");
  set_key(recipe, "deepseek2.expert_gating_func", "u32", 4);
  expect_error<NotYetError>("'deepseek2.expert_gating_func' = 4", [&] { describe(recipe); });
  recipe = recipe_of("mixtral-f32");
  set_key(recipe, "llama.expert_used_count", "u32", 5);
  expect_error<CheckpointError>({"'llama.expert_used_count' = 5", "1 to 4"}, [&] { describe(recipe); });
  recipe = recipe_of("mixtral-f32");
  set_key(recipe, "llama.expert_count", "u32", 1025);
  expect_error<CheckpointError>({"'llama.expert_count' = 1025", "0 to 1024"}, [&] { describe(recipe); });
  recipe = recipe_of("qwen3-f32");
  set_key(recipe, "qwen3.expert_count", "u32", 4);
  expect_error<NotYetError>("routed experts in architecture 'qwen3'", [&] { describe(recipe); });
  recipe = recipe_of("gptoss-f32");
  set_key(recipe, "gpt-oss.expert_count", "u32", 0);
  for (const char* block : {"blk.0.", "blk.1."})
    for (const char* name : {"ffn_gate_inp.weight", "ffn_down_exps.weight"})
      drop_tensor(recipe, std::string(block) + name);
  expect_error<NotYetError>("block 0: the clamped gate without routed experts", [&] { describe(recipe); });
  recipe = recipe_of("deepseek2-f32");
  set_key(recipe, "deepseek2.expert_gating_func", "u32", 2);
  set_key(recipe, "deepseek2.expert_group_count", "u32", 3);
  expect_error<CheckpointError>({"expert_group_count", "a divisor of the 4 experts"}, [&] { describe(recipe); });
}

/// llama.cpp leaves these keys unread in these architectures, and a file that has them means another model.
TEST(SpecErrors, OptionsThatTheArchitectureDoesNotRead) {
  const std::tuple<const char*, const char*, const char*, json> options[] = {
      {"minicpm3-f32", "embedding_scale", "f32", 3.0},
      {"gptoss-f32", "rope.scaling.yarn_beta_fast", "f32", 16.0},
      {"qwen3moe-f32", "expert_weights_scale", "f32", 1.5},
      {"qwen3moe-f32", "expert_weights_norm", "bool", false},
      {"qwen2moe-f32", "expert_weights_norm", "bool", true},
      {"mixtral-f32", "expert_weights_norm", "bool", false},
      {"mixtral-f32", "expert_weights_scale", "f32", 2.5},
      {"deepseek-f32", "expert_weights_norm", "bool", true},
      {"ernie4_5moe-f32", "expert_gating_func", "u32", 2},
      {"gptoss-f32", "expert_gating_func", "u32", 1},
      {"olmoe-f32", "leading_dense_block_count", "u32", 1},
      {"lfm2moe-f32", "interleave_moe_layer_step", "u32", 2},
      {"granitemoe-f32", "expert_weights_scale", "f32", -0.5},
  };
  for (const auto& [name, option, type, value] : options) {
    json recipe = recipe_of(name);
    const std::string key = recipe["architecture"].get<std::string>() + "." + option;
    set_key(recipe, key, type, value);
    expect_error<NotYetError>({"'" + key + "' = ", "the architecture has no such option"}, [&] { describe(recipe); });
  }
}

/// As long as they say what the architecture does anyway, they are fine.
TEST(SpecErrors, OptionsOfExpertsThatSayNothingNew) {
  json recipe = recipe_of("qwen3moe-f32");
  const std::string text = to_text(describe(recipe));
  set_key(recipe, "qwen3moe.expert_weights_norm", "bool", true);
  set_key(recipe, "qwen3moe.expert_weights_scale", "f32", 1.0);
  set_key(recipe, "qwen3moe.expert_gating_func", "u32", 1);
  set_key(recipe, "qwen3moe.leading_dense_block_count", "u32", 0);
  set_key(recipe, "qwen3moe.interleave_moe_layer_step", "u32", 1);
  EXPECT_EQ(to_text(describe(recipe)), text);
}

TEST(SpecErrors, DeltaProjectionsBothInOneTensorAndApart) {
  json recipe = recipe_of("qwen3next-f32");
  add_tensor(recipe, "blk.1.ssm_in.weight", {384, 256});
  expect_error<CheckpointError>({"'blk.1.attn_qkv.weight'", "which the architecture does not use"},
                                [&] { describe(recipe); });
}

TEST(SpecErrors, ParallelResidualWithTwoNorms) {
  json recipe = recipe_of("stablelm-f32");
  set_key(recipe, "stablelm.use_parallel_residual", "bool", true);
  expect_error<NotYetError>("use_parallel_residual", [&] { describe(recipe); });
}

TEST(SpecErrors, TensorsThatNothingReads) {
  json recipe = recipe_of("llama-f32");
  add_tensor(recipe, "blk.0.attn_q_norm.weight", {64});
  expect_error<CheckpointError>("tensor 'blk.0.attn_q_norm.weight', which the architecture does not use",
                                [&] { describe(recipe); });
  recipe = recipe_of("qwen2-f32");
  add_tensor(recipe, "blk.2.attn_q.weight", {256, 256});
  expect_error<CheckpointError>("tensor 'blk.2.attn_q.weight'", [&] { describe(recipe); });
  recipe = recipe_of("qwen2-f32");
  add_tensor(recipe, "rope_freqs.weight", {32});
  expect_error<CheckpointError>("tensor 'rope_freqs.weight'", [&] { describe(recipe); });
}

TEST(SpecErrors, VisionTowersAndTrailingBlocksAreLeftOut) {
  json recipe = recipe_of("qwen3-f32");
  const std::string plain = to_text(describe(recipe));
  set_key(recipe, "qwen3.block_count", "u32", 3);
  set_key(recipe, "qwen3.nextn_predict_layers", "u32", 1);
  add_tensor(recipe, "blk.2.nextn.eh_proj.weight", {256, 512});
  add_tensor(recipe, "v.patch_embd.weight", {4, 4});
  add_tensor(recipe, "mm.0.weight", {4, 4});
  const ModelSpec spec = describe(recipe);
  EXPECT_EQ(spec.layers.size(), 2u);
  EXPECT_EQ(spec.left_out.size(), 3u);
  EXPECT_EQ(to_text(spec), plain + "left out 3 tensors\n");
}

/// Keys that may be missing, and that tensors show to be wanted.
TEST(SpecErrors, KeysThatTensorsShowToBeMissing) {
  const std::tuple<const char*, const char*, const char*> keys[] = {
      {"mixtral-f32", "llama.expert_count", "4, the number of experts that tensors have"},
      {"deepseek2-f32", "deepseek2.leading_dense_block_count", "1, the blocks before the first with experts"},
      {"deepseek2-f32", "deepseek2.attention.q_lora_rank", "the rows of 'attn_q_a'"},
      {"deepseek2-f32", "deepseek2.attention.key_length", "an integer"},
      {"deepseek2-f32", "deepseek2.expert_feed_forward_length", "an integer"},
      {"qwen35moe-f32", "qwen35moe.expert_feed_forward_length", "an integer"},
      {"dots1-f32", "dots1.expert_shared_count", "an integer"},
      {"ernie4_5moe-f32", "ernie4_5-moe.expert_shared_feed_forward_length", "an integer"},
      {"lfm2-f32", "lfm2.attention.head_count_kv", "one for each block"},
      {"glm4moe-f32", "glm4moe.nextn_predict_layers", "as many blocks end in nextn tensors"},
      {"mimo2-f32", "mimo2.attention.sliding_window_pattern", "a value for each block"},
      {"qwen35-f32", "qwen35.rope.dimension_sections", "four numbers"},
  };
  for (const auto& [name, key, wanted] : keys) {
    json recipe = recipe_of(name);
    drop_key(recipe, key);
    expect_error<CheckpointError>({std::string("no key '") + key + "'", wanted}, [&] { describe(recipe); });
  }
  json recipe = recipe_of("mixtral-f32");
  set_key(recipe, "llama.expert_count", "u32", 0);
  expect_error<CheckpointError>({"'llama.expert_count' = 0", "expected 4, the"}, [&] { describe(recipe); });
}

/// As llama.cpp reads files that do not say them.
TEST(SpecErrors, WidthsOfExpertsWithoutTheirKeys) {
  json recipe = recipe_of("qwen2moe-f32");
  drop_key(recipe, "qwen2moe.expert_feed_forward_length");
  drop_key(recipe, "qwen2moe.expert_shared_feed_forward_length");
  for (const char* block : {"blk.0.", "blk.1."}) {
    for (const char* name : {"ffn_gate_shexp.weight", "ffn_up_shexp.weight"})
      tensor(recipe, std::string(block) + name)["shape"] = {256, 128};
    tensor(recipe, std::string(block) + "ffn_down_shexp.weight")["shape"] = {128, 256};
  }
  const auto experts = std::get<Experts>(describe(recipe).layers[1].feed_forward);
  EXPECT_EQ(experts.width, 128);  // feed_forward_length, 256, among 2 experts
  EXPECT_EQ(experts.shared->width, 256);
}

TEST(SpecErrors, NumbersOfBlocksUnlikeTheTensors) {
  json recipe = recipe_of("llama-f32");
  set_key(recipe, "llama.block_count", "u32", 400);
  expect_error<CheckpointError>({"'llama.block_count' = 400", "at most 2"}, [&] { describe(recipe); });
  recipe = recipe_of("qwen3-f32");
  add_tensor(recipe, "blk.1.nextn.eh_proj.weight", {256, 512});
  set_key(recipe, "qwen3.nextn_predict_layers", "u32", 0);
  expect_error<CheckpointError>({"'qwen3.nextn_predict_layers' = 0", "1, as many blocks end"},
                                [&] { describe(recipe); });
  // A layer that is no such block is not left out, whatever the key says; blocks without tensors are.
  for (const char* name : {"llama", "qwen35", "deepseek2"}) {
    recipe = recipe_of(std::string(name) + "-f32");
    set_key(recipe, std::string(name) + ".nextn_predict_layers", "u32", 1);
    expect_error<CheckpointError>({std::string("'") + name + ".nextn_predict_layers' = 1", "expected 0, as many"},
                                  [&] { describe(recipe); });
  }
  recipe = recipe_of("qwen3-f32");
  const auto layers = describe(recipe).layers.size();
  set_key(recipe, "qwen3.block_count", "u32", layers + 1);
  set_key(recipe, "qwen3.nextn_predict_layers", "u32", 1);
  EXPECT_EQ(describe(recipe).layers.size(), layers);
  recipe = recipe_of("qwen3-f32");
  add_tensor(recipe, "blk.2.nextn.eh_proj.weight", {256, 512});
  expect_error<CheckpointError>({"'qwen3.block_count' = 2", "3, blocks with nextn tensors included"},
                                [&] { describe(recipe); });
}

TEST(SpecErrors, MessagesSayWhatWasFound) {
  const std::tuple<const char*, const char*, const char*, json, const char*> changes[] = {
      {"qwen35-f32", "qwen35.ssm.inner_size", "u32", 7, "'qwen35.ssm.inner_size' = 7; expected 128: 4 heads of 32"},
      {"llama-f32", "llama.attention.causal", "bool", false, "'llama.attention.causal' = false: attention that sees"},
      {"llama-f32", "llama.new_scale", "f32", 2.5, "no known meaning for 'llama.new_scale' = 2.5"},
      {"mimo2-f32", "mimo2.attention.sliding_window_pattern", "u32", 2, "of type u32; expected an array of integers"},
  };
  for (const auto& [name, key, type, value, message] : changes) {
    json recipe = recipe_of(name);
    set_key(recipe, key, type, value);
    expect_error<Error>(message, [&] { describe(recipe); });
  }
}

TEST(SpecErrors, TokensAndRows) {
  json recipe = recipe_of("llama-f32");
  drop_key(recipe, "llama.vocab_size");
  for (const char* name : {"token_embd.weight", "output.weight"}) tensor(recipe, name)["shape"] = {511, 256};
  expect_error<CheckpointError>({"'tokenizer.ggml.tokens' with 512 tokens", "1 to the 511 rows"},
                                [&] { describe(recipe); });
  for (const char* name : {"token_embd.weight", "output.weight"}) tensor(recipe, name)["shape"] = {520, 256};
  const ModelSpec spec = describe(recipe);
  EXPECT_EQ(spec.rows, 520);
  EXPECT_EQ(spec.tokens, 512);
}

TEST(SpecErrors, Context) {
  const json recipe = recipe_of("llama-f32");
  expect_error<UsageError>({"a context of 2049", "1 to the model's 2048"}, [&] { describe(recipe, 2049); });
  expect_error<UsageError>("a context of -1", [&] { describe(recipe, -1); });
  EXPECT_EQ(describe(recipe).ctx, 2048);
  EXPECT_EQ(describe(recipe, 16).ctx, 16);
  json large = recipe;
  set_key(large, "llama.context_length", "u32", 131072);
  EXPECT_EQ(describe(large).ctx, 4096);
}

TEST(SpecErrors, FactorsAreChosenByTheContext) {
  const json recipe = recipe_of("phi3-f32");
  const auto factors = [&](int64_t ctx) {
    return std::get<Attention>(describe(recipe, ctx).layers[0].mixer).rotary->factors;
  };
  EXPECT_EQ(factors(32).tensor, "rope_factors_short.weight");
  EXPECT_EQ(factors(33).tensor, "rope_factors_long.weight");
}

}  // namespace
}  // namespace lane::test
