#include "support/random_model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lane/formats.h"
#include "support/recipe.h"

namespace lane::test {
namespace {

using nlohmann::json;

/// Where a format's blocks have scales, and sizes of them that suit each other: halves, then one byte.
struct BlockScales {
  FormatId format;
  std::vector<std::pair<int, double>> halves;
};
const BlockScales kBlockScales[] = {
    {FormatId::Q4_0, {{0, 1}}},          {FormatId::Q4_1, {{0, 1}, {2, -7.5}}},
    {FormatId::Q5_0, {{0, 1}}},          {FormatId::Q5_1, {{0, 1}, {2, -15}}},
    {FormatId::Q8_0, {{0, 1}}},          {FormatId::Q2_K, {{80, 2}, {82, 3}}},
    {FormatId::Q3_K, {{108, 1}}},        {FormatId::Q4_K, {{0, 1}, {2, 7.5}}},
    {FormatId::Q5_K, {{0, 1}, {2, 15}}}, {FormatId::Q6_K, {{208, 1}}},
    {FormatId::IQ4_NL, {{0, 1}}},        {FormatId::IQ4_XS, {{0, 1}}},
};

void put_half(std::vector<std::byte>& block, int at, double value) {
  const uint16_t bits = half_bits(value);
  std::memcpy(&block[size_t(at)], &bits, sizeof bits);
}

/// The standard deviation of random blocks with these scales.
double spread(const Format& format, const BlockScales& scales) {
  std::mt19937 random(1);
  std::vector<std::byte> block(size_t(format.block_bytes));
  std::vector<double> values(size_t(format.block_elements));
  double squares = 0;
  constexpr int kBlocks = 64;
  for (int i = 0; i < kBlocks; ++i) {
    for (std::byte& b : block) b = std::byte(random() & 0xff);
    for (const auto& [at, size] : scales.halves) put_half(block, at, size);
    format.decode(block.data(), values.size(), values.data());
    for (double v : values) squares += v * v;
  }
  return std::sqrt(squares / (kBlocks * format.block_elements));
}

json block_fill(const Format& format, double deviation) {
  if (FormatId(format.id) == FormatId::MXFP4) {  // a power of two times values of a deviation near 6
    const int exponent = 128 + int(std::lround(std::log2(deviation / 6)));
    return {{"kind", "blocks"}, {"scales", json::array()}, {"one_byte_scales", {{0, exponent}}}};
  }
  for (const BlockScales& scales : kBlockScales) {
    if (int32_t(scales.format) != format.id) continue;
    const double factor = deviation / spread(format, scales);
    json halves = json::array();
    for (const auto& [at, size] : scales.halves) halves.push_back({at, size * factor});
    return {{"kind", "blocks"}, {"scales", halves}};
  }
  return {{"kind", "uniform"}, {"mean", 0.0}, {"sd", deviation}};
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  bool coin() { return random_() % 2 == 0; }
  int64_t upto(int64_t last) { return int64_t(random_() % uint64_t(last + 1)); }
  template <class T>
  T one_of(std::initializer_list<T> of) {
    return of.begin()[random_() % of.size()];
  }
  bool has(Presence presence) { return presence == Presence::Required || (presence == Presence::Optional && coin()); }

 private:
  std::mt19937_64 random_;
};

/// Every row draws other models from the same seed.
uint64_t mixed(std::string_view name, uint64_t seed) {
  for (const char c : name) seed = seed * 1000003 + uint64_t(c);
  return seed;
}

class Author {
 public:
  Author(const Architecture& row, uint64_t seed, const std::vector<const Format*>& formats)
      : row_(row), dice_(mixed(row.name, seed)) {
    format_ = formats[size_t(dice_.upto(int64_t(formats.size()) - 1))];
    recipe_ = {{"architecture", row.name}, {"seed", seed}, {"metadata", json::array()}, {"tensors", json::array()}};
  }

  RandomModel take() {
    draw_sizes();
    say_sizes();
    say_rotary();
    say_ends();
    if (row_.mixers == Mixers::Delta) say_delta_sizes();
    if (has_experts_) say_experts();
    for (int64_t block = 0; block < layers_; ++block) say_block(block);
    const std::string summary = fmt::format(
        "{}: {} layers of width {}, feed-forward {}, {} heads on {} of {} and {}, window {}, context {}, {} tokens, {}",
        row_.name, layers_, width_, ff_, heads_, groups_, head_, value_head_, window_, context_, tokens_,
        format_->name);
    return {std::move(recipe_), context_, summary};
  }

 private:
  // Sizes

  void draw_sizes() {
    width_ = dice_.one_of<int64_t>({32, 64, 72, 96, 160, 256, 288});
    ff_ = dice_.one_of<int64_t>({32, 40, 64, 96, 256, 320});
    const bool recurrent = row_.mixers == Mixers::Convolution || row_.mixers == Mixers::Delta;
    layers_ = recurrent ? dice_.one_of<int64_t>({2, 3, 4}) : dice_.one_of<int64_t>({1, 2, 3, 5});
    groups_ = dice_.one_of<int64_t>({1, 1, 2, 3});
    heads_ = groups_ * dice_.one_of<int64_t>({1, 2, 3, 4});
    head_ = value_head_ = dice_.one_of<int64_t>({16, 32, 64, 80, 96, 128});
    turned_ = dice_.coin() ? head_ : head_ / 2;
    context_ = dice_.one_of<int64_t>({2, 8, 64});
    window_ = dice_.one_of<int64_t>({1, 2, 5, 16});
    tokens_ = dice_.one_of<int64_t>({61, 128, 301});
    // The clamped gate is for experts alone.
    only_experts_ = row_.activation == Activation::Clamped;
    has_experts_ = only_experts_ || (row_.experts.layers != ExpertLayers::None && dice_.upto(3) > 0);
    if (row_.mixers == Mixers::Latent) draw_latent();
  }

  void draw_latent() {
    rank_ = dice_.one_of<int64_t>({32, 48, 64});
    query_rank_ = dice_.one_of<int64_t>({0, 32, 40});
    turned_ = dice_.one_of<int64_t>({8, 16, 32});
    plain_ = dice_.one_of<int64_t>({16, 32, 64});
    value_head_ = dice_.one_of<int64_t>({16, 32, 48});
    absorbed_ = dice_.coin();
  }

  const Format& format_for(int64_t columns) const {
    return columns % format_->block_elements == 0 ? *format_ : lane::format(FormatId::F32);
  }

  // Keys and tensors

  void key(std::string_view name, const char* type, json value) {
    recipe_["metadata"].push_back({fmt::format("{}.{}", row_.name, name), type, std::move(value)});
  }
  void integer(std::string_view name, int64_t value) { key(name, "u32", value); }
  void real(std::string_view name, double value) { key(name, "f32", value); }

  void tensor(const std::string& name, json shape, std::string_view type, json fill) {
    recipe_["tensors"].push_back(
        {{"name", name}, {"shape", std::move(shape)}, {"type", type}, {"fill", std::move(fill)}});
  }
  void matrix(const std::string& name, json shape, double gain = 1) {
    const int64_t columns = shape.back();
    const Format& format = format_for(columns);
    tensor(name, std::move(shape), format.name, block_fill(format, gain / std::sqrt(double(columns))));
  }
  /// Vectors may be of any plain float type.
  void vector(const std::string& name, json shape, double mean, double deviation) {
    const std::string_view type = dice_.one_of<std::string_view>({"F32", "F32", "F16", "BF16"});
    tensor(name, std::move(shape), type, {{"kind", "uniform"}, {"mean", mean}, {"sd", deviation}});
  }
  void gain(const std::string& name, json shape) { vector(name, std::move(shape), 1, 0.2); }
  void bias(Presence presence, const std::string& name, json shape) {
    if (dice_.has(presence)) vector(name, std::move(shape), 0, 0.1);
  }
  void norm(const std::string& base) {
    if (dice_.has(row_.norm_gain)) gain(base + ".weight", {width_});
    bias(row_.norm_bias, base + ".bias", {width_});
  }
  std::string at(int64_t block, std::string_view name) const { return fmt::format("blk.{}.{}", block, name); }

  // The model

  void say_sizes() {
    integer("block_count", layers_);
    integer("context_length", context_);
    integer("embedding_length", width_);
    integer("feed_forward_length", ff_);
    integer("attention.head_count", heads_);
    real(row_.norm == NormKind::Rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
    if (row_.mixers == Mixers::Latent) return say_latent_sizes();
    if (row_.mixers == Mixers::Convolution) {
      taps_ = dice_.one_of<int64_t>({2, 3, 5});
      integer("shortconv.l_cache", taps_);
      json groups = json::array();
      for (int64_t i = 0; i < layers_; ++i) groups.push_back(is_recurrent(i) ? 0 : groups_);
      key("attention.head_count_kv", "arr_i32", groups);
    } else {
      integer("attention.head_count_kv", groups_);
    }
    if (row_.value_scale_key && dice_.coin()) value_head_ = head_ / 2;
    integer("attention.key_length", head_);
    integer("attention.value_length", value_head_);
    say_attention_options();
  }

  void say_attention_options() {
    if (row_.score_cap > 0) real("attn_logit_softcapping", 5);
    if (row_.score_scale_key && dice_.coin()) real("attention.scale", 0.1);
    if (row_.value_scale_key && dice_.coin()) real("attention.value_scale", 0.7);
    if (row_.clamp_key && dice_.coin()) real("attention.clamp_kqv", 1);
    if (row_.temperature_key && dice_.coin()) {
      real("attention.temperature_scale", 0.1);
      integer("rope.scaling.original_context_length", 4);
    }
    if (!dice_.has(row_.window)) return;
    integer("attention.sliding_window", window_);
    json pattern = json::array();
    for (int64_t i = 0; i < layers_; ++i) pattern.push_back(dice_.coin());
    if (row_.window_period == 0 || dice_.coin()) key("attention.sliding_window_pattern", "arr_bool", pattern);
  }

  void say_latent_sizes() {
    integer("attention.head_count_kv", absorbed_ ? 1 : heads_);
    integer("attention.kv_lora_rank", rank_);
    if (query_rank_ > 0) integer("attention.q_lora_rank", query_rank_);
    integer("attention.key_length", absorbed_ ? rank_ + turned_ : plain_ + turned_);
    integer("attention.value_length", absorbed_ ? rank_ : value_head_);
    if (!absorbed_) return;
    integer("attention.key_length_mla", plain_ + turned_);
    integer("attention.value_length_mla", value_head_);
  }

  void say_rotary() {
    real("rope.freq_base", dice_.one_of({1e4, 1e6}));
    integer("rope.dimension_count", turned_);
    if (row_.sections == Presence::Required) key("rope.dimension_sections", "arr_i32", {turned_ / 2, 0, 0, 0});
    if (row_.rotary_layers == RotaryLayers::Finetuned && dice_.coin()) key("rope.scaling.finetuned", "bool", false);
    const auto kind = dice_.one_of<const char*>({"none", "linear", "yarn"});
    key("rope.scaling.type", "str", kind);
    real("rope.scaling.factor", 4);
    if (!row_.frequency_factors || dice_.coin()) return;
    vector(dice_.coin() ? "rope_freqs.weight" : "rope_factors_long.weight", {turned_ / 2}, 2, 0.5);
    if (recipe_["tensors"].back()["name"] == "rope_factors_long.weight")
      vector("rope_factors_short.weight", {turned_ / 2}, 1, 0.1);
  }

  void say_scale(Scale kind, std::string_view name, double value) {
    if (kind == Scale::Key || kind == Scale::InverseKey) real(name, value);
  }

  void say_ends() {
    matrix("token_embd.weight", {tokens_, width_}, 0.5 * std::sqrt(double(width_)));
    norm(std::string(row_.final_norm));
    if (dice_.has(row_.head)) matrix("output.weight", {tokens_, width_}, 2);
    bias(row_.head_bias, "output.bias", {tokens_});
    say_scale(row_.embedding_scale, "embedding_scale", 2);
    say_scale(row_.residual_scale, "residual_scale", 0.5);
    say_scale(row_.logit_scale, "logit_scale", 0.5);
    if (row_.logit_cap > 0 || (row_.logit_cap_key && dice_.coin())) real("final_logit_softcapping", 8);
  }

  void say_delta_sizes() {
    delta_groups_ = dice_.one_of<int64_t>({1, 2, 3});
    delta_heads_ = delta_groups_ * dice_.one_of<int64_t>({1, 2, 3});
    delta_width_ = dice_.one_of<int64_t>({16, 32, 64});
    taps_ = dice_.one_of<int64_t>({2, 4});
    interleaved_ = !row_.delta_tiled && dice_.coin();
    together_ = dice_.coin();
    integer("ssm.conv_kernel", taps_);
    integer("ssm.state_size", delta_width_);
    integer("ssm.group_count", delta_groups_);
    integer("ssm.time_step_rank", delta_heads_);
    integer("ssm.inner_size", delta_heads_ * delta_width_);
    integer("full_attention_interval", 2);
  }

  void say_experts() {
    experts_ = dice_.one_of<int64_t>({1, 2, 4, 7});
    expert_ff_ = dice_.one_of<int64_t>({32, 48, 96, 256});
    dense_layers_ = row_.experts.leading_key ? dice_.upto(1) : 0;
    shared_ = dice_.has(row_.experts.shared) ? dice_.one_of<int64_t>({32, 64, 80}) : 0;
    integer("expert_count", experts_);
    integer("expert_used_count", 1 + dice_.upto(experts_ - 1));
    integer("expert_feed_forward_length", expert_ff_);
    if (shared_ > 0) integer("expert_shared_feed_forward_length", shared_);
    integer("leading_dense_block_count", dense_layers_);
    if (dice_.has(row_.experts.gating_key)) integer("expert_gating_func", 1 + dice_.upto(2));
    if (row_.experts.normalised_key && dice_.coin()) key("expert_weights_norm", "bool", dice_.coin());
    if (row_.experts.factor_key && dice_.coin()) real("expert_weights_scale", 1.5);
  }

  // Its layers

  bool is_recurrent(int64_t block) const {
    return (row_.mixers == Mixers::Convolution || row_.mixers == Mixers::Delta) && (block + 1) % 2 != 0;
  }

  void say_block(int64_t block) {
    if (!row_.mixer_norm.empty()) norm(at(block, row_.mixer_norm));
    if (!row_.mixer_post_norm.empty()) norm(at(block, row_.mixer_post_norm));
    const bool parallel = row_.residual == Residual::Parallel || (row_.residual == Residual::ByNorm && dice_.coin());
    if (!row_.ffn_norm.empty() && !parallel) norm(at(block, row_.ffn_norm));
    if (!row_.ffn_post_norm.empty()) norm(at(block, row_.ffn_post_norm));
    if (row_.mixers == Mixers::Latent)
      say_latent(block);
    else if (!is_recurrent(block))
      say_attention(block);
    else if (row_.mixers == Mixers::Delta)
      say_delta(block);
    else
      say_convolution(block);
    const bool routed =
        has_experts_ && (row_.experts.layers == ExpertLayers::ByRouter ? dice_.coin() : block >= dense_layers_);
    routed ? say_expert_layer(block) : say_dense(block, "", ff_, row_.ffn_bias);
  }

  void say_attention(int64_t block) {
    const int64_t q = heads_ * head_ * (row_.gated_attention ? 2 : 1), k = groups_ * head_, v = groups_ * value_head_;
    if (!row_.gated_attention && dice_.upto(3) == 0) {
      matrix(at(block, "attn_qkv.weight"), {q + k + v, width_});
      bias(row_.qkv_bias, at(block, "attn_qkv.bias"), {q + k + v});
    } else {
      const bool biased = dice_.has(row_.qkv_bias);
      for (const auto& [name, rows] : {std::pair("attn_q", q), std::pair("attn_k", k), std::pair("attn_v", v)}) {
        matrix(at(block, name) + ".weight", {rows, width_});
        if (biased) vector(at(block, name) + ".bias", {rows}, 0, 0.1);
      }
    }
    matrix(at(block, "attn_output.weight"), {width_, heads_ * value_head_});
    bias(row_.output_bias, at(block, "attn_output.bias"), {width_});
    bias(row_.sinks, at(block, "attn_sinks.weight"), {heads_});
    if (row_.head_norm != HeadNorm::None && dice_.has(row_.head_norm_presence)) say_head_norms(block);
  }

  void say_head_norms(int64_t block) {
    for (const auto& [name, heads] : {std::pair("attn_q_norm.weight", heads_), {"attn_k_norm.weight", groups_}}) {
      json shape = {head_};
      if (row_.head_norm == HeadNorm::OwnGains) shape = {heads, head_};
      if (row_.head_norm == HeadNorm::Whole) shape = {heads * head_};
      gain(at(block, name), shape);
    }
  }

  void say_latent(int64_t block) {
    const int64_t rows = heads_ * (plain_ + turned_);
    if (query_rank_ > 0) {
      matrix(at(block, "attn_q_a.weight"), {query_rank_, width_});
      gain(at(block, "attn_q_a_norm.weight"), {query_rank_});
      matrix(at(block, "attn_q_b.weight"), {rows, query_rank_});
    } else {
      matrix(at(block, "attn_q.weight"), {rows, width_});
    }
    matrix(at(block, "attn_kv_a_mqa.weight"), {rank_ + turned_, width_});
    gain(at(block, "attn_kv_a_norm.weight"), {rank_});
    if (absorbed_) {
      matrix(at(block, "attn_k_b.weight"), {heads_, rank_, plain_});
      matrix(at(block, "attn_v_b.weight"), {heads_, value_head_, rank_});
    } else {
      matrix(at(block, "attn_kv_b.weight"), {heads_ * (plain_ + value_head_), rank_});
    }
    matrix(at(block, "attn_output.weight"), {width_, heads_ * value_head_});
  }

  void say_convolution(int64_t block) {
    vector(at(block, "shortconv.conv.weight"), {width_, taps_}, 0, 0.6);
    matrix(at(block, "shortconv.in_proj.weight"), {3 * width_, width_}, 1.6);
    matrix(at(block, "shortconv.out_proj.weight"), {width_, width_});
  }

  void say_delta(int64_t block) {
    const int64_t inner = delta_heads_ * delta_width_, channels = 2 * delta_groups_ * delta_width_ + inner;
    if (interleaved_) {
      matrix(at(block, "ssm_in.weight"), {channels + inner, width_});
    } else {
      matrix(at(block, "attn_qkv.weight"), {channels, width_});
      matrix(at(block, "attn_gate.weight"), {inner, width_});
    }
    vector(at(block, "ssm_conv1d.weight"), {channels, taps_}, 0, 0.5);
    vector(at(block, "ssm_dt.bias"), {delta_heads_}, 0, 0.5);
    tensor(at(block, "ssm_a"), {delta_heads_}, "F32", {{"kind", "negexp"}, {"lo", -2.0}, {"hi", 1.0}});
    if (together_) {
      matrix(at(block, "ssm_ba.weight"), {2 * delta_heads_, width_});
    } else {
      matrix(at(block, "ssm_beta.weight"), {delta_heads_, width_});
      matrix(at(block, "ssm_alpha.weight"), {delta_heads_, width_});
    }
    gain(at(block, "ssm_norm.weight"), {delta_width_});
    matrix(at(block, "ssm_out.weight"), {width_, inner});
  }

  void say_dense(int64_t block, const std::string& suffix, int64_t ff, Presence biased) {
    const bool fused = row_.fused_gate_up && suffix.empty();
    const auto linear = [&](const std::string& name, int64_t rows, int64_t columns) {
      matrix(at(block, name + suffix) + ".weight", {rows, columns});
      bias(biased, at(block, name + suffix) + ".bias", {rows});
    };
    if (row_.gated && !fused) linear("ffn_gate", ff, width_);
    linear("ffn_up", fused ? 2 * ff : ff, width_);
    linear("ffn_down", width_, ff);
  }

  void say_expert_layer(int64_t block) {
    const ExpertRow& row = row_.experts;
    const int64_t n = experts_, ff = expert_ff_;
    matrix(at(block, "ffn_gate_inp.weight"), {n, width_}, 2);
    bias(row.router_bias, at(block, "ffn_gate_inp.bias"), {n});
    bias(row.selection_bias, at(block, "exp_probs_b.bias"), {n});
    const auto linear = [&](const std::string& name, int64_t rows, int64_t columns) {
      matrix(at(block, name + ".weight"), {n, rows, columns});
      bias(row.bias, at(block, name + ".bias"), {n, rows});
    };
    if (dice_.upto(2) == 0) {
      linear("ffn_gate_up_exps", 2 * ff, width_);
    } else {
      linear("ffn_gate_exps", ff, width_);
      linear("ffn_up_exps", ff, width_);
    }
    linear("ffn_down_exps", width_, ff);
    if (shared_ == 0) return;
    say_dense(block, "_shexp", shared_, Presence::Absent);
    if (dice_.has(row.shared_gate)) matrix(at(block, "ffn_gate_inp_shexp.weight"), {width_});
  }

  const Architecture& row_;
  Dice dice_;
  json recipe_;
  const Format* format_ = nullptr;
  int64_t layers_ = 0, width_ = 0, ff_ = 0, heads_ = 0, groups_ = 0, head_ = 0, value_head_ = 0, turned_ = 0;
  int64_t context_ = 0, window_ = 0, tokens_ = 0;
  int64_t rank_ = 0, query_rank_ = 0, plain_ = 0;
  int64_t delta_groups_ = 0, delta_heads_ = 0, delta_width_ = 0, taps_ = 0;
  int64_t experts_ = 0, expert_ff_ = 0, dense_layers_ = 0, shared_ = 0;
  bool has_experts_ = false, only_experts_ = false, absorbed_ = false, interleaved_ = false, together_ = false;
};

}  // namespace

RandomModel random_model(const Architecture& row, uint64_t seed, const std::vector<const Format*>& formats) {
  return Author(row, seed, formats).take();
}

}  // namespace lane::test
