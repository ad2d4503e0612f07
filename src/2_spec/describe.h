// The parts of describe_model, one a file. Each reads keys and takes tensors for one thing and returns it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "keys.h"
#include "lane/architectures.h"
#include "lane/spec.h"
#include "tensors.h"

namespace lane {

/// What every part reads: the row, the metadata, the tensors, and the numbers that are the model's and no layer's.
struct Source {
  const Architecture& row;
  Keys& keys;
  Tensors& tensors;
  Refusals& refusals;
  Size width = 0;      // embedding_length
  Size blocks = 0;     // block_count, trailing ones that text does not need included
  int64_t layers = 0;  // the blocks of a step
  int64_t ctx = 0;     // positions that caches hold
  int64_t model_ctx = 0;
  double epsilon = 0;  // of norms

  Size product(std::initializer_list<Size> factors) const {
    return lane::product(tensors.checkpoint(), refusals, factors);
  }
};

/// One layer's place in the checkpoint.
struct Block {
  int64_t index = 0;
  std::string tensor(std::string_view name) const { return "blk." + std::to_string(index) + "." + std::string(name); }
};

// norms.cpp
/// `base`.weight and, where the row says so, `base`.bias, over `columns` values.
Norm norm(const Source& source, const std::string& base, Size columns);
/// The norm of a layer that the row names; none where the name is empty.
std::optional<Norm> layer_norm(const Source& source, const Block& block, std::string_view name);

// rotary.cpp
/// What rotates a layer's queries and keys; none where the layer is not rotated.
std::optional<Rotary> rotary(const Source& source, const Block& block, Size width, bool windowed);
/// Positions that the model was trained on before its context was stretched.
int64_t original_context(const Source& source);
/// What multiplies cosine and sine, beside what yarn makes of its factor.
double attention_factor(const Source& source);
/// 0 where the architecture does not read it.
double yarn_log_multiplier(const Source& source);
/// Positions that layers with a window see; 0: no layer has one.
Size window_size(const Source& source);

// attention.cpp
Attention attention(const Source& source, const Block& block);

// latent.cpp
LatentAttention latent_attention(const Source& source, const Block& block);

// recurrent.cpp
ShortConvolution short_convolution(const Source& source, const Block& block);
DeltaRule delta_rule(const Source& source, const Block& block);

// mixer.cpp
Mixer mixer(const Source& source, const Block& block);

// feed_forward.cpp
FeedForward feed_forward(const Source& source, const Block& block);

}  // namespace lane
