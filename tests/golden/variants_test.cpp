// Models that no golden case is: options of rows that their files do not use. Their forms lift and agree with each
// other in double, and what was changed changes the logits.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lane/error.h"
#include "lane/gguf.h"
#include "lane/graph.h"
#include "lane/logos.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "lane/spec.h"
#include "support/expect_error.h"
#include "support/files.h"
#include "support/golden_case.h"
#include "support/recipe.h"
#include "support/recipe_edits.h"

namespace lane::test {
namespace {

using nlohmann::json;

constexpr int kTokens = 8;

std::string at(int block, const std::string& name) { return "blk." + std::to_string(block) + "." + name; }

class Model {
 public:
  explicit Model(const json& recipe) {
    write_checkpoint(recipe, folder_ / "model.gguf");
    checkpoint_ = read_checkpoint(folder_ / "model.gguf");
    Options options;
    options.ctx = 32;
    const ModelSpec spec = describe_model(checkpoint_, options);
    verify(spec);
    program_ = author(spec);
    verify(program_);
  }
  std::vector<double> logits(FormKind kind, int64_t rows) const {
    StepGraph graph = lift(parse_logos(cut(program_, kind, rows).text));
    verify(graph);
    const Constants constants(graph, checkpoint_);
    Reference step(std::move(graph), constants, {}, 1);
    std::vector<int32_t> ids;
    for (int i = 0; i < kTokens; ++i) ids.push_back(40 + 17 * i);
    if (kind == FormKind::Prefill) {
      step.run({{"toks", ids}, {"pos_s0", {0}}});
    } else {
      for (int i = 0; i < kTokens; ++i) step.run({{"tok", {ids[size_t(i)]}}, {"pos", {i}}});
    }
    return {step.value("logits").begin(), step.value("logits").end()};
  }
  void lift_batch() const { verify(lift(parse_logos(cut(program_, FormKind::Batch, 3).text))); }

 private:
  TempFolder folder_;
  Checkpoint checkpoint_;
  ModelProgram program_;
};

struct Variant {
  std::string name, of;
  std::function<void(json&)> edit;
};

void for_blocks(int count, const std::function<void(int)>& edit) {
  for (int block = 0; block < count; ++block) edit(block);
}

void add_heads_norms(json& r, int block, const json& q, const json& k) {
  add_tensor(r, at(block, "attn_q_norm.weight"), q, 1);
  add_tensor(r, at(block, "attn_k_norm.weight"), k, 1);
}

void make_dense(json& r, int block, const std::vector<std::string>& routed, int width) {
  for (const std::string& name : routed) drop_tensor(r, at(block, name));
  add_tensor(r, at(block, "ffn_gate.weight"), {width, 256});
  add_tensor(r, at(block, "ffn_up.weight"), {width, 256});
  add_tensor(r, at(block, "ffn_down.weight"), {256, width});
}

const Variant kVariants[] = {
    {"fused_projections_with_biases", "llama-f32",
     [](json& r) {
       for (const char* name : {"attn_q.weight", "attn_k.weight", "attn_v.weight"}) drop_tensor(r, at(0, name));
       add_tensor(r, at(0, "attn_qkv.weight"), {512, 256});
       add_tensor(r, at(0, "attn_q.bias"), {256});
       add_tensor(r, at(0, "attn_k.bias"), {128});
       add_tensor(r, at(0, "attn_v.bias"), {128});
       add_tensor(r, at(1, "attn_output.bias"), {256});
     }},
    {"linear_rotary", "llama-f32",
     [](json& r) {
       set_key(r, "llama.rope.scaling.type", "str", "linear");
       set_key(r, "llama.rope.scaling.factor", "f32", 4.0);
     }},
    {"yarn", "qwen3-f32",
     [](json& r) {
       set_key(r, "qwen3.rope.scaling.type", "str", "yarn");
       set_key(r, "qwen3.rope.scaling.factor", "f32", 4.0);
       set_key(r, "qwen3.rope.scaling.original_context_length", "u32", 512);
     }},
    {"experts_by_sigmoid_with_groups", "deepseek2-f32",
     [](json& r) {
       set_key(r, "deepseek2.expert_gating_func", "u32", 2);
       set_key(r, "deepseek2.expert_group_count", "u32", 2);
       set_key(r, "deepseek2.expert_group_used_count", "u32", 1);
       set_key(r, "deepseek2.expert_weights_norm", "bool", true);
       set_key(r, "deepseek2.expert_weights_scale", "f32", 2.5);
       add_tensor(r, at(1, "exp_probs_b.bias"), {4});
     }},
    {"experts_by_softmax_with_groups", "deepseek2-f32",
     [](json& r) {
       set_key(r, "deepseek2.expert_group_count", "u32", 2);
       set_key(r, "deepseek2.expert_group_used_count", "u32", 1);
       set_key(r, "deepseek2.expert_weights_scale", "f32", 2.5);
     }},
    {"experts_by_softmax_with_a_bias", "mixtral-f32",
     [](json& r) {
       set_architecture(r, "ernie4_5-moe");
       set_key(r, "ernie4_5-moe.expert_feed_forward_length", "u32", 256);
       for_blocks(2, [&](int block) { add_tensor(r, at(block, "exp_probs_b.bias"), {4}, 0); });
     }},
    {"experts_in_every_second_layer", "mixtral-f32",
     [](json& r) {
       set_architecture(r, "ernie4_5-moe");
       set_key(r, "ernie4_5-moe.expert_feed_forward_length", "u32", 256);
       set_key(r, "ernie4_5-moe.interleave_moe_layer_step", "u32", 2);
       make_dense(r, 0, {"ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"},
                  256);
     }},
    {"latent_attention_as_trained", "deepseek2-f32",
     [](json& r) {
       for_blocks(2, [&](int block) {
         drop_tensor(r, at(block, "attn_k_b.weight"));
         drop_tensor(r, at(block, "attn_v_b.weight"));
         add_tensor(r, at(block, "attn_kv_b.weight"), {256, 64});
       });
       drop_key(r, "deepseek2.attention.key_length_mla");
       drop_key(r, "deepseek2.attention.value_length_mla");
       set_key(r, "deepseek2.attention.key_length", "u32", 64);
       set_key(r, "deepseek2.attention.value_length", "u32", 32);
     }},
    {"latent_attention_with_whole_queries_and_yarn", "deepseek2-f32",
     [](json& r) {
       drop_key(r, "deepseek2.attention.q_lora_rank");
       for_blocks(2, [&](int block) {
         for (const char* name : {"attn_q_a.weight", "attn_q_a_norm.weight", "attn_q_b.weight"})
           drop_tensor(r, at(block, name));
         add_tensor(r, at(block, "attn_q.weight"), {256, 256});
       });
       set_key(r, "deepseek2.rope.scaling.type", "str", "yarn");
       set_key(r, "deepseek2.rope.scaling.factor", "f32", 40.0);
       set_key(r, "deepseek2.rope.scaling.original_context_length", "u32", 64);
       set_key(r, "deepseek2.rope.scaling.yarn_log_multiplier", "f32", 0.1);
     }},
    {"fused_experts", "mixtral-f32",
     [](json& r) {
       drop_tensor(r, at(0, "ffn_gate_exps.weight"));
       drop_tensor(r, at(0, "ffn_up_exps.weight"));
       add_tensor(r, at(0, "ffn_gate_up_exps.weight"), {4, 512, 256});
     }},
    {"parallel_with_norms_of_each_head", "stablelm-f32",
     [](json& r) {
       for_blocks(2, [&](int block) {
         drop_tensor(r, at(block, "ffn_norm.weight"));
         drop_tensor(r, at(block, "ffn_norm.bias"));
         add_heads_norms(r, block, {4, 64}, {4, 64});
       });
     }},
    {"norm_without_weights_and_clamp", "llama-f32",
     [](json& r) {
       set_architecture(r, "olmo");
       set_key(r, "olmo.attention.layer_norm_epsilon", "f32", 1e-5);
       set_key(r, "olmo.attention.clamp_kqv", "f32", 1.0);
       for_blocks(2, [&](int block) {
         drop_tensor(r, at(block, "attn_norm.weight"));
         drop_tensor(r, at(block, "ffn_norm.weight"));
       });
       drop_tensor(r, "output_norm.weight");
     }},
    {"queries_scaled_by_position", "llama-f32",
     [](json& r) {
       set_architecture(r, "mistral3");
       set_key(r, "mistral3.attention.temperature_scale", "f32", 0.1);
       set_key(r, "mistral3.rope.scaling.type", "str", "yarn");
       set_key(r, "mistral3.rope.scaling.factor", "f32", 16.0);
       set_key(r, "mistral3.rope.scaling.original_context_length", "u32", 4);
       set_key(r, "mistral3.rope.scaling.yarn_log_multiplier", "f32", 1.0);
     }},
    {"norm_after_rotation", "qwen3-f32", [](json& r) { set_architecture(r, "hunyuan-dense"); }},
    {"windows_alone_are_rotated", "commandr-f32",
     [](json& r) {
       set_architecture(r, "cohere2");
       set_key(r, "cohere2.attention.sliding_window", "u32", 4);
       set_key(r, "cohere2.attention.sliding_window_pattern", "u32", 2);
     }},
    {"unrotated", "granite-f32", [](json& r) { set_key(r, "granite.rope.scaling.finetuned", "bool", false); }},
    {"shared_expert_with_scales_and_biases", "mixtral-f32",
     [](json& r) {
       set_architecture(r, "granitemoe");
       set_key(r, "granitemoe.logit_scale", "f32", 4.0);
       set_key(r, "granitemoe.residual_scale", "f32", 0.5);
       set_key(r, "granitemoe.expert_shared_feed_forward_length", "u32", 128);
       for_blocks(2, [&](int block) {
         add_tensor(r, at(block, "attn_q.bias"), {256});
         add_tensor(r, at(block, "attn_k.bias"), {128});
         add_tensor(r, at(block, "attn_v.bias"), {128});
         add_tensor(r, at(block, "attn_output.bias"), {256});
         add_tensor(r, at(block, "ffn_gate_shexp.weight"), {128, 256});
         add_tensor(r, at(block, "ffn_up_shexp.weight"), {128, 256});
         add_tensor(r, at(block, "ffn_down_shexp.weight"), {256, 128});
       });
     }},
    {"experts_where_there_is_a_router", "mimo2-f32",
     [](json& r) {
       set_key(r, "mimo2.expert_count", "u32", 4);
       set_key(r, "mimo2.expert_used_count", "u32", 2);
       for (const char* name : {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}) drop_tensor(r, at(2, name));
       add_tensor(r, at(2, "ffn_gate_inp.weight"), {4, 256});
       add_tensor(r, at(2, "exp_probs_b.bias"), {4});
       add_tensor(r, at(2, "ffn_gate_exps.weight"), {4, 256, 256});
       add_tensor(r, at(2, "ffn_up_exps.weight"), {4, 256, 256});
       add_tensor(r, at(2, "ffn_down_exps.weight"), {4, 256, 256});
     }},
    {"delta_projections_by_head", "qwen3next-f32",
     [](json& r) {
       for (const char* name : {"attn_qkv.weight", "attn_gate.weight"}) drop_tensor(r, at(0, name));
       add_tensor(r, at(0, "ssm_in.weight"), {384, 256});
     }},
    {"dense_layers_alone_where_experts_may_be", "deepseek2-f32",
     [](json& r) {
       set_key(r, "deepseek2.leading_dense_block_count", "u32", 2);
       set_key(r, "deepseek2.expert_weights_norm", "bool", true);
       make_dense(r, 1,
                  {"ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight",
                   "ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"},
                  512);
     }},
    {"padded_vocabulary", "qwen2-f32",
     [](json& r) {
       tensor(r, "token_embd.weight")["shape"] = {520, 256};
     }},
};

class Variants : public testing::TestWithParam<Variant> {};

TEST_P(Variants, FormsLiftAndAgree) {
  json recipe = load_case(GetParam().of).recipe;
  GetParam().edit(recipe);
  const Model model(recipe);
  const std::vector<double> steps = model.logits(FormKind::Decode, 1);
  EXPECT_EQ(steps.size(), 512u);
  for (double logit : steps) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_EQ(model.logits(FormKind::Prefill, kTokens), steps);
  model.lift_batch();
}

TEST_P(Variants, ComputeAnotherThingThanTheGolden) {
  json recipe = load_case(GetParam().of).recipe;
  const std::vector<double> before = Model(recipe).logits(FormKind::Decode, 1);
  GetParam().edit(recipe);
  const bool same_model = GetParam().name == "padded_vocabulary";
  EXPECT_EQ(Model(recipe).logits(FormKind::Decode, 1) == before, same_model);
}

INSTANTIATE_TEST_SUITE_P(Models, Variants, testing::ValuesIn(kVariants),
                         [](const auto& variant) { return variant.param.name; });

/// The spec of an edited golden case, as text.
std::string spec_of(const std::string& name, const std::function<void(json&)>& edit) {
  json recipe = load_case(name).recipe;
  edit(recipe);
  const TempFolder folder;
  write_checkpoint(recipe, folder / "model.gguf");
  return to_text(describe_model(read_checkpoint(folder / "model.gguf"), Options()));
}
size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) found++;
  return found;
}

// What follows was held against llama.cpp's logits, as goldens are.

TEST(Windows, OfMimo2AreNotScaled) {
  const std::string text = spec_of("mimo2-f32", [](json& r) {
    set_key(r, "mimo2.rope.scaling.type", "str", "yarn");
    set_key(r, "mimo2.rope.scaling.factor", "f32", 4.0);
    set_key(r, "mimo2.rope.scaling.original_context_length", "u32", 16);
  });
  EXPECT_GT(count(text, "  window "), 0u);
  EXPECT_EQ(count(text, " yarn"), count(text, "  rotary ") - count(text, "  window ")) << text;
}

TEST(Windows, OfAPeriodOfZeroAreInEveryLayer) {
  const std::string text =
      spec_of("gemma3-f32", [](json& r) { set_key(r, "gemma3.attention.sliding_window_pattern", "u32", 0); });
  EXPECT_EQ(count(text, "  window "), count(text, "\nlayer ")) << text;
}

TEST(Windows, OfExaone4AreThoseOfItsModelOf64Blocks) {
  const std::string small =
      spec_of("exaone4-f32", [](json& r) { set_key(r, "exaone4.attention.sliding_window", "u32", 8); });
  EXPECT_EQ(count(small, "  window "), 0u);
  EXPECT_EQ(count(small, "  rotary "), count(small, "\nlayer "));
  const std::string large = spec_of("exaone4_64-f32", [](json& r) {
    drop_key(r, "exaone4.attention.sliding_window");
    if (r.dump().find("sliding_window_pattern") != std::string::npos)
      drop_key(r, "exaone4.attention.sliding_window_pattern");
  });
  EXPECT_EQ(count(large, "  window 4096\n"), 48u);
  EXPECT_EQ(count(large, "  rotary "), 48u);
}

/// A file may say which layers recur and at what interval others follow: then the layers decide.
TEST(Recurrent, LayersDecideWhereAnIntervalIsSaidToo) {
  const auto of = [](const json& layers) {
    return spec_of("qwen3next-f32",
                   [&](json& r) { set_key(r, "qwen3next.attention.recurrent_layers", "arr_bool", layers); });
  };
  const std::string as_the_interval = of({true, true, true, false});
  EXPECT_EQ(as_the_interval, spec_of("qwen3next-f32", [](json&) {}));
  expect_error<ShapeError>("blk.2.attn_qkv.weight", [&] { of({true, true, false, false}); });
}

/// 1 + 0.1 ln 4, in queries and keys alike.
TEST(Yarn, ScalesLatentScoresByATenthOfTheLogarithmWhereTheFileSaysNothing) {
  const auto yarn = [](json& r) {
    set_key(r, "deepseek2.rope.scaling.type", "str", "yarn");
    set_key(r, "deepseek2.rope.scaling.factor", "f32", 4.0);
    set_key(r, "deepseek2.rope.scaling.original_context_length", "u32", 16);
  };
  const auto scale = [](const std::string& text) { return std::stod(text.substr(text.find(" scale ") + 7)); };
  const double plain = scale(spec_of("deepseek2-f32", [](json&) {})), scaled = scale(spec_of("deepseek2-f32", yarn));
  EXPECT_NEAR(scaled / plain, std::pow(1 + 0.1 * std::log(4.0), 2), 1e-6);
}

}  // namespace
}  // namespace lane::test
