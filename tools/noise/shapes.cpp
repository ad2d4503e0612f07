#include "noise/shapes.h"

#include <algorithm>

namespace lane::noise {
namespace {

using enum Extent;

constexpr TensorRow kTied[] = {{"output_norm.weight", One, Embedding, Role::Gain},
                               {"token_embd.weight", Vocabulary, Embedding, Role::Output}};

constexpr TensorRow kTiedLlama3[] = {{"rope_freqs.weight", One, HalfHead, Role::Divisors},
                                     {"output_norm.weight", One, Embedding, Role::Gain},
                                     {"token_embd.weight", Vocabulary, Embedding, Role::Output}};

constexpr TensorRow kLlama3[] = {{"rope_freqs.weight", One, HalfHead, Role::Divisors},
                                 {"output_norm.weight", One, Embedding, Role::Gain},
                                 {"token_embd.weight", Vocabulary, Embedding, Role::Matrix},
                                 {"output.weight", Vocabulary, Embedding, Role::Output}};

constexpr TensorRow kLlamaLayer[] = {{"attn_norm.weight", One, Embedding, Role::Gain},
                                     {"attn_q.weight", Queries, Embedding, Role::Matrix},
                                     {"attn_k.weight", Keys, Embedding, Role::Matrix},
                                     {"attn_v.weight", Keys, Embedding, Role::FineMatrix},
                                     {"attn_output.weight", Embedding, Queries, Role::Matrix},
                                     {"ffn_norm.weight", One, Embedding, Role::Gain},
                                     {"ffn_gate.weight", FeedForward, Embedding, Role::Matrix},
                                     {"ffn_up.weight", FeedForward, Embedding, Role::Matrix},
                                     {"ffn_down.weight", Embedding, FeedForward, Role::FineMatrix}};

constexpr TensorRow kQwen2Layer[] = {{"attn_norm.weight", One, Embedding, Role::Gain},
                                     {"attn_q.weight", Queries, Embedding, Role::Matrix},
                                     {"attn_q.bias", One, Queries, Role::Bias},
                                     {"attn_k.weight", Keys, Embedding, Role::Matrix},
                                     {"attn_k.bias", One, Keys, Role::Bias},
                                     {"attn_v.weight", Keys, Embedding, Role::FineMatrix},
                                     {"attn_v.bias", One, Keys, Role::Bias},
                                     {"attn_output.weight", Embedding, Queries, Role::Matrix},
                                     {"ffn_norm.weight", One, Embedding, Role::Gain},
                                     {"ffn_gate.weight", FeedForward, Embedding, Role::Matrix},
                                     {"ffn_up.weight", FeedForward, Embedding, Role::Matrix},
                                     {"ffn_down.weight", Embedding, FeedForward, Role::FineMatrix}};

constexpr TensorRow kGemma3Layer[] = {{"attn_norm.weight", One, Embedding, Role::Gain},
                                      {"attn_q.weight", Queries, Embedding, Role::Matrix},
                                      {"attn_q_norm.weight", One, Head, Role::Gain},
                                      {"attn_k.weight", Keys, Embedding, Role::Matrix},
                                      {"attn_k_norm.weight", One, Head, Role::Gain},
                                      {"attn_v.weight", Keys, Embedding, Role::FineMatrix},
                                      {"attn_output.weight", Embedding, Queries, Role::Matrix},
                                      {"post_attention_norm.weight", One, Embedding, Role::Gain},
                                      {"ffn_norm.weight", One, Embedding, Role::Gain},
                                      {"ffn_gate.weight", FeedForward, Embedding, Role::Matrix},
                                      {"ffn_up.weight", FeedForward, Embedding, Role::Matrix},
                                      {"ffn_down.weight", Embedding, FeedForward, Role::FineMatrix},
                                      {"post_ffw_norm.weight", One, Embedding, Role::Gain}};

// name, architecture; layers, embedding, feed-forward, heads, of keys, head; context, vocabulary; base, epsilon; window
constexpr Shape kShapes[] = {
    {"gemma3-270m", "gemma3", 18, 640, 2048, 4, 1, 256, 32768, 262144, 1e6, 1e-6, 512, TextModel::SentencePieces,
     "default", kTied, kGemma3Layer},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 32768, 151936, 1e6, 1e-6, 0, TextModel::BytePairs, "qwen2",
     kTied, kQwen2Layer},
    {"llama3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 131072, 128256, 5e5, 1e-5, 0, TextModel::BytePairs, "llama-bpe",
     kTiedLlama3, kLlamaLayer},
    {"llama3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 131072, 128256, 5e5, 1e-5, 0, TextModel::BytePairs,
     "llama-bpe", kLlama3, kLlamaLayer},
};

}  // namespace

int64_t Shape::extent(Extent e) const {
  switch (e) {
    case One:
      return 1;
    case Embedding:
      return embedding;
    case Queries:
      return heads * head;
    case Keys:
      return kv_heads * head;
    case FeedForward:
      return feed_forward;
    case Head:
      return head;
    case HalfHead:
      return head / 2;
    case Vocabulary:
      return vocabulary;
  }
  return 0;
}

std::span<const Shape> shapes() { return kShapes; }

const Shape* find_shape(std::string_view name) {
  const Shape* found = std::ranges::find(kShapes, name, &Shape::name);
  return found == std::end(kShapes) ? nullptr : found;
}

}  // namespace lane::noise
