// Shapes of real models, a row each: what a checkpoint filled with noise has in common with the model's own.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/gguf_builder.h"

namespace lane::noise {

/// A tensor's extent, as a number of the shape.
enum class Extent { One, Embedding, Queries, Keys, FeedForward, Head, HalfHead, Vocabulary };

/// What a tensor holds: it says how the mix of formats stores it, and what values it takes.
enum class Role {
  Gain,      // of a norm: about 1
  Bias,      // about 0
  Divisors,  // of rotary frequencies: from 1 on
  Matrix,
  FineMatrix,  // attention's values and the feed-forward's last product: a mix stores some layers' finer
  Output,      // what makes the logits: finer in every mix
};

struct TensorRow {
  std::string_view name;  // after "blk.N." for a layer's
  Extent rows, columns;
  Role role;
};

enum class TextModel { BytePairs, SentencePieces };

struct Shape {
  std::string_view name, architecture;
  int64_t layers, embedding, feed_forward, heads, kv_heads, head;  // head: the width of one
  int64_t context, vocabulary;
  double rotary_base, epsilon;
  int64_t window;  // 0: none
  TextModel text;
  std::string_view pre;  // the pre-tokenizer's name
  std::span<const TensorRow> model, layer;

  int64_t extent(Extent e) const;
};

std::span<const Shape> shapes();
const Shape* find_shape(std::string_view name);

/// The keys of `shape`'s architecture and its vocabulary: as many tokens as the model has, all different.
void add_metadata(const Shape& shape, test::GgufText& file);

}  // namespace lane::noise
