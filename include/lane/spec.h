// Pass 2: a checkpoint as numbers. Metadata and tensors are read by one row of the architecture table into layers, each
// with what mixes its tokens and its feed-forward; after this pass nothing looks at metadata again.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lane/architectures.h"
#include "lane/gguf.h"
#include "lane/options.h"

namespace lane {

/// A tensor that the model uses, its shape checked against the metadata. `columns` are contiguous.
struct Weight {
  std::string tensor;  // the checkpoint's name: "blk.0.attn_q.weight"; empty: the model has none
  int64_t experts = 1, rows = 1, columns = 1;
  bool matrix = false;  // operand of a product or a look-up; else a vector, or a few of them
  explicit operator bool() const { return !tensor.empty(); }
};

/// matrix x + bias.
struct Linear {
  Weight matrix = {}, bias = {};
  explicit operator bool() const { return bool(matrix); }
};

struct Norm {
  NormKind kind = NormKind::Rms;
  double epsilon = 0;
  int64_t width = 0;       // values normalised together; 0: the whole row
  bool own_gains = false;  // every head has gains of its own: `gain` covers the whole row
  Weight gain = {}, bias = {};
};

/// Rotary embedding of the first `turned` of each `width` values. The angle of pair i at position p is
/// p base^(-2i / turned) / factor_i, scaled as docs/logos.md says.
struct Rotary {
  struct Yarn {
    double factor = 1, original = 0, fast = 32, slow = 1;
  };
  int64_t width = 0, turned = 0;
  double base = 10000;
  Pairing pairing = Pairing::Halves;
  double magnitude = 1;  // multiplies cosine and sine
  double linear = 1;     // divides the position
  std::optional<Yarn> yarn = {};
  Weight factors = {};
};

/// Queries are multiplied by 1 + factor ln(1 + floor(position / length)).
struct Temperature {
  double factor = 0;
  int64_t length = 0;
};

struct Attention {
  int64_t heads = 0, groups = 0;       // query heads; key and value heads
  int64_t width = 0, value_width = 0;  // of a head's keys, and of its values
  double scale = 1;                    // of the scores
  int64_t window = 0;                  // positions seen; 0: all
  double score_cap = 0;                // 0: none
  double value_scale = 1;              // of the attention's output
  double clamp = 0;                    // of projected queries, keys and values; 0: none
  bool gated = false;                  // each head of q: `width` queries, then as many gate values
  bool norm_after_rotation = false;
  Linear fused = {};  // rows of q, k and v, one below the other: then `q`, `k` and `v` have no matrices
  Linear q = {}, k = {}, v = {}, output = {};
  std::optional<Norm> q_norm = {}, k_norm = {};
  std::optional<Rotary> rotary = {};
  std::optional<Temperature> temperature = {};
  Weight sinks = {};
};

/// Attention on a latent of `rank` values that all heads share, with `turned` rotated values beside it. Absorbed: keys
/// and values are the latent itself, and each head has matrices of its own before (key_up) and after (value_up).
struct LatentAttention {
  int64_t heads = 0, rank = 0;
  int64_t plain = 0, turned = 0, value_width = 0;  // of a head
  double scale = 1;
  Linear query_down = {}, query = {};  // query_down is optional, and its norm with it
  std::optional<Norm> query_norm = {};
  Linear latent = {};
  Norm latent_norm = {};
  Linear key_up = {}, value_up = {};  // absorbed: a matrix a head
  Linear key_value_up = {};           // not absorbed: each head's `plain` key rows, then its value rows
  Linear output = {};
  Rotary rotary = {};
};

/// out(C * conv(B * X)) with [B | C | X] = in(x): `taps` inputs each, the newest last.
struct ShortConvolution {
  int64_t taps = 0, channels = 0;
  Linear in = {}, out = {};
  Weight kernel = {};
};

/// The gated delta rule: docs/logos.md, "delta rule".
struct DeltaRule {
  int64_t heads = 0, groups = 0;  // value heads, key heads
  int64_t width = 0;              // of a head's keys and values
  int64_t taps = 0;
  double epsilon = 0;  // of the length norms of queries and keys
  bool tiled = false;
  Linear qkv = {}, gate = {}, out = {};
  Linear interleaved = {};  // or, for both qkv and gate: each key head's query, key, values, and gates of its values
  Linear beta = {}, alpha = {};  // or, both in one, `beta_alpha`: each key head's betas, then its alphas
  Linear beta_alpha = {};
  Weight kernel = {}, time_bias = {}, rate = {};
  Norm norm = {};
};

using Mixer = std::variant<Attention, LatentAttention, ShortConvolution, DeltaRule>;

struct Dense {
  Activation activation = Activation::Silu;
  bool gated = true;
  int64_t width = 0;
  bool fused = false;  // `up` holds the gate's rows, then up's
  Linear gate = {}, up = {}, down = {};
};

struct Experts {
  int64_t count = 0, used = 0, width = 0;
  int64_t groups = 1, kept = 1;
  Activation activation = Activation::Silu;
  double limit = 0, slope = 0;  // of Activation::Clamped
  Gating gating = Gating::Softmax;
  bool normalised = false;
  double factor = 1;  // of the weights
  Linear router = {};
  Weight selection_bias = {};
  bool fused = false;  // `up` holds each expert's gate rows, then its up rows
  Linear gate = {}, up = {}, down = {};
  std::optional<Dense> shared = {};
  Linear shared_gate = {};  // one row: the shared expert's output times its sigmoid
};

using FeedForward = std::variant<Dense, Experts>;

struct Layer {
  std::optional<Norm> mixer_norm = {}, mixer_post_norm = {}, ffn_norm = {}, ffn_post_norm = {};
  bool parallel = false;  // the feed-forward reads the mixer's input
  Mixer mixer = {};
  FeedForward feed_forward = {};
};

/// A tensor of the file that a step of text does not need.
struct LeftOut {
  /// A vision tower's, or one of a trailing block's that predicts further tokens (multi-token prediction).
  enum class Part { Vision, Nextn };
  std::string tensor;
  Part part = Part::Vision;
};

struct ModelSpec {
  const Architecture* architecture = nullptr;
  int64_t ctx = 0;        // positions that caches hold
  int64_t model_ctx = 0;  // what the model was made for
  int64_t width = 0;      // of the residual stream
  int64_t rows = 0;       // of the embedding table
  int64_t tokens = 0;     // of the vocabulary: at most rows; ids from here on are padding, and never chosen
  Weight embedding = {};
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  double logit_cap = 0;  // 0: none
  std::vector<Layer> layers = {};
  Norm final_norm = {};
  Linear head = {};  // the embedding table itself where it is tied
  std::vector<LeftOut> left_out = {};
};

/// Reads the checkpoint by its architecture's row. Throws NotYetError (an architecture, or a key that changes the
/// mathematics, that no row has), CheckpointError (a key or tensor that is missing, of the wrong type, or out of range,
/// or that nothing reads), ShapeError (a tensor against the metadata, exit code Checkpoint) and UsageError (a context
/// beyond the model's).
ModelSpec describe_model(const Checkpoint& checkpoint, const Options& options);

/// What describe_model would say of a checkpoint, all of it: where describe_model throws, this goes on. What follows
/// from a number that is refused itself is not refused: the shapes of a part whose sizes are not known.
struct Survey {
  using Names = std::set<std::string, std::less<>>;
  bool known = true;         // the architecture is; where it is not, nothing is known of keys and tensors
  Names read;                // tensors of the file that the model's step reads
  Names misshapen;           // those of them whose shape is refused
  Names unshaped;            // those of them with a size that a refused key would say
  int64_t nextn_blocks = 0;  // blocks at the end that are left out
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> refusals = {};  // each with its type's name; none: describe_model returns
};

/// Throws UsageError alone, for a context beyond the model's.
Survey survey_model(const Checkpoint& checkpoint, const Options& options);

/// Throws InternalError where the product contradicts itself.
void verify(const ModelSpec& spec);

/// One fact a line. No path, date or host, and no string of the checkpoint's.
std::string to_text(const ModelSpec& spec);

}  // namespace lane
