// Architectures, a row each: how a model's metadata and tensors become layers. Nothing else in lanec knows an
// architecture by name. docs/extending.md shows how a row is added.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lane {

/// Whether a checkpoint of the architecture has a tensor or a key.
enum class Presence { Absent, Optional, Required };

enum class NormKind {
  Rms,    // x / sqrt(mean(x^2) + epsilon)
  Layer,  // the mean is taken away first
};

/// Which two values of a head a rotation turns together.
enum class Pairing {
  Neighbours,  // 2i and 2i + 1
  Halves,      // i and i + turned / 2
};

enum class Activation { Silu, Gelu, SquareRelu, Clamped /* clamp(g) sigmoid(slope g) (clamp(u) + 1) */ };

/// Norms of queries and keys: what one gain covers.
enum class HeadNorm {
  None,
  EachHead,  // one head's width at a time, the same gain for all heads
  OwnGains,  // one head's width at a time, every head with gains of its own
  Whole,     // all heads at once
};

enum class RotaryLayers {
  All,
  Windowed,   // layers with a window, where the model has any
  Finetuned,  // all, or none where the key rope.scaling.finetuned is false
};

/// What mixes tokens, layer by layer.
enum class Mixers {
  Attention,
  Latent,       // attention on a shared low-rank latent
  Convolution,  // a short convolution where head_count_kv is 0, else attention
  Delta,        // the gated delta rule, and attention every full_attention_interval layers
};

enum class Residual {
  Sequential,  // x += mixer(x), then x += feed-forward(x)
  Parallel,    // x += mixer(x) + feed-forward(x), both from the mixer's norm
  ByNorm,      // parallel where the layer has no norm before its feed-forward
};

/// What rope.scaling.yarn_log_multiplier L does to YaRN's magnitude 1 + ln(factor) / 10.
enum class YarnLog {
  Unread,
  Ratio,   // divides it by 1 + L ln(factor) / 10
  Scores,  // the magnitude is 1, and the scores are multiplied by (1 + L ln(factor))^2
};

/// What rotary scaling does in layers with a window.
enum class WindowScaling {
  Same,         // as in the others
  Unstretched,  // positions are as they are; rope.scaling.attn_factor still multiplies
  None,
};

/// A number that multiplies an array, or none.
enum class Scale {
  None,
  RootOfWidth,  // sqrt(embedding_length)
  Key,          // as the key says; 0 stands for 1
  InverseKey,   // divided by what the key says
  Fixed,        // the row's number
  OverDepth,    // the row's number / sqrt(block_count)
  OverWidth,    // the row's number / embedding_length
};

/// How router scores become weights. Values are GGUF's expert_gating_func less one.
enum class Gating { Softmax = 0, Sigmoid = 1, SoftmaxOfChosen = 2 };

/// Where a layer's feed-forward is made of routed experts.
enum class ExpertLayers {
  None,
  Counted,   // where expert_count is over 0: from leading_dense_block_count on, every interleave_moe_layer_step-th
  ByRouter,  // where the layer has a router tensor
};

/// Values in an expert where expert_feed_forward_length does not say it.
enum class ExpertWidth {
  Required,  // the key is
  Dense,     // as a layer without experts has: feed_forward_length
  Share,     // feed_forward_length / expert_used_count
};

/// Values in the expert that every token takes where expert_shared_feed_forward_length does not say it.
enum class SharedWidth {
  Required,  // the key is
  Counted,   // expert_shared_count experts
  Dense,     // feed_forward_length
};

struct ExpertRow {
  ExpertLayers layers = ExpertLayers::None;
  bool leading_key = false;                // leading_dense_block_count is read
  bool interleave_key = false;             // interleave_moe_layer_step is read
  Presence gating_key = Presence::Absent;  // expert_gating_func
  Gating gating = Gating::Softmax;         // without the key
  bool normalised = false;                 // weights are divided by their sum
  bool normalised_key = false;             // expert_weights_norm is read, and overrides that
  bool factor_key = false;                 // expert_weights_scale is read
  Presence selection_bias = Presence::Absent;
  Presence router_bias = Presence::Absent;
  Presence bias = Presence::Absent;  // of each expert's projections
  ExpertWidth width = ExpertWidth::Required;
  Presence shared = Presence::Absent;  // an expert every token takes
  SharedWidth shared_width = SharedWidth::Counted;
  Presence shared_gate = Presence::Absent;  // and a sigmoid gate on it
};

struct Architecture {
  std::string_view name;

  // Norms. Names are a layer's tensors, without "blk.N." and ".weight"; empty: the layer has no such norm.
  NormKind norm = NormKind::Rms;
  Presence norm_gain = Presence::Required;
  Presence norm_bias = Presence::Absent;
  std::string_view mixer_norm = "attn_norm";
  std::string_view mixer_post_norm = "";  // on the mixer's output, before the residual
  std::string_view ffn_norm = "ffn_norm";
  std::string_view ffn_post_norm = "";
  std::string_view final_norm = "output_norm";
  Residual residual = Residual::Sequential;

  // Mixers.
  Mixers mixers = Mixers::Attention;
  Presence qkv_bias = Presence::Absent;
  Presence output_bias = Presence::Absent;
  HeadNorm head_norm = HeadNorm::None;
  Presence head_norm_presence = Presence::Required;  // where head_norm is not None
  bool norm_after_rotation = false;
  bool gated_attention = false;       // each head's query rows are followed by as many gate rows
  Presence sinks = Presence::Absent;  // a score each head adds to its softmax, without a value
  bool delta_tiled = false;           // value head h reads key head h mod groups; else h div (heads / groups)
  int64_t wide_scale_blocks = 0;      // a model of so many blocks scales scores by 1 / sqrt(embedding / heads)
  double score_cap = 0;               // default of attn_logit_softcapping; 0: the key is not read
  bool score_scale_key = false;       // attention.scale is read
  bool value_scale_key = false;       // attention.value_scale is read
  bool clamp_key = false;             // attention.clamp_kqv is read
  bool temperature_key = false;       // attention.temperature_scale is read

  // Rotary embedding.
  Pairing pairing = Pairing::Neighbours;
  RotaryLayers rotary_layers = RotaryLayers::All;
  int64_t unrotated_period = 0;    // layers i with (i + 1) % period == 0 are not rotated
  bool frequency_factors = false;  // rope_freqs, rope_factors_long and rope_factors_short are read
  YarnLog yarn_log = YarnLog::Unread;
  bool yarn_beta_keys = false;           // rope.scaling.yarn_beta_fast and _slow are read; else 32 and 1
  Presence sections = Presence::Absent;  // rope.dimension_sections: text positions are equal in all of them

  // Windows: layers i with i % period < period - 1 see the last attention.sliding_window positions; all layers, with a
  // period of 0.
  Presence window = Presence::Absent;
  int64_t window_default = 0;    // positions, without the key attention.sliding_window
  int64_t window_period = 0;     // without the key attention.sliding_window_pattern; 0: the key is required
  int64_t window_blocks = 0;     // models of so many blocks alone have windows; 0: of any number
  bool window_base_key = false;  // rope.freq_base_swa is read
  double window_base = 0;        // without the key; 0: rope.freq_base
  WindowScaling window_scaling = WindowScaling::Same;
  bool ignores_window = false;  // the files' attention.sliding_window is not used (as their other readers do)

  // Feed-forward.
  Activation activation = Activation::Silu;
  bool gated = true;
  double clamp_limit = 0, clamp_slope = 0;  // of Activation::Clamped
  bool fused_gate_up = false;               // ffn_up holds the gate's rows, then up's
  Presence ffn_bias = Presence::Absent;
  ExpertRow experts = {};

  // Ends.
  Presence head = Presence::Optional;  // output.weight; where absent, the embedding table is the head
  Presence head_bias = Presence::Absent;
  Scale embedding_scale = Scale::None;
  double embedding_scale_default = 0;  // where there is no key; 0: the key is required
  Scale residual_scale = Scale::None;
  double residual_scale_default = 0;
  Scale logit_scale = Scale::None;
  double logit_scale_default = 0;
  double logit_cap = 0;        // default of final_logit_softcapping
  bool logit_cap_key = false;  // the key is read; without it, and without a default, no cap
};

/// All rows, ordered by name.
std::span<const Architecture> architectures();
/// Null where lanec has no such row.
const Architecture* find_architecture(std::string_view name);
/// What the row of a known architecture would need that no op computes yet, "per-layer embeddings": for the message
/// that refuses it. Empty where lanec knows nothing of the name.
std::string_view missing_mathematics(std::string_view architecture);

}  // namespace lane
