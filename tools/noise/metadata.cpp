#include <fmt/format.h>

#include <string>
#include <vector>

#include "noise/shapes.h"

namespace lane::noise {
namespace {

using test::Bytes;
using test::GgufText;

constexpr int64_t kBytes = 256;
enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;  // byte pairs
  std::vector<float> scores;        // sentence pieces

  void add(std::string token, int32_t type) {
    tokens.push_back(std::move(token));
    types.push_back(type);
  }
  int64_t size() const { return int64_t(tokens.size()); }
};

/// Code points below U+0800.
std::string utf8(uint32_t c) {
  if (c < 0x80) return {char(c)};
  return {char(0xC0 | c >> 6), char(0x80 | (c & 0x3F))};
}

/// Byte pairs write a byte as a visible character: itself where it is one, else one from U+0100 on.
std::vector<std::string> byte_characters() {
  std::vector<std::string> characters;
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < kBytes; ++b) {
    const bool visible = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
    characters.push_back(utf8(visible ? b : next++));
  }
  return characters;
}

/// The bytes, what merges make of them, and two control tokens. Token 256 + 256 q + r is token q with byte r after it:
/// so all differ, and each is a merge of two that stand before it.
Vocabulary byte_pairs(int64_t size) {
  Vocabulary v;
  for (const std::string& character : byte_characters()) v.add(character, kNormal);
  for (int64_t i = 0; v.size() < size - 2; ++i) {
    const std::string left = v.tokens[size_t(i / kBytes)], right = v.tokens[size_t(i % kBytes)];
    v.merges.push_back(left + ' ' + right);
    v.add(left + right, kNormal);
  }
  v.add("<|begin_of_text|>", kControl);
  v.add("<|end_of_text|>", kControl);
  return v;
}

/// Control tokens, the bytes, letters with a space's mark, and pairs of pieces as above.
Vocabulary sentence_pieces(int64_t size) {
  Vocabulary v;
  for (const char* name : {"<pad>", "<eos>", "<bos>"}) v.add(name, kControl);
  v.add("<unk>", kUnknown);
  for (int64_t b = 0; b < kBytes; ++b) v.add(fmt::format("<0x{:02X}>", b), kByte);
  const int64_t first = v.size();
  v.add("\u2581", kNormal);
  for (char c = 'a'; c <= 'z'; ++c) v.add({c}, kNormal);
  const int64_t letters = v.size() - first;
  for (int64_t i = 0; v.size() < size; ++i) {
    v.add(v.tokens[size_t(first + i / letters)] + v.tokens[size_t(first + i % letters)], kNormal);
  }
  for (int64_t i = 0; i < v.size(); ++i) v.scores.push_back(float(-i));
  return v;
}

void add_strings(GgufText& file, std::string_view key, const std::vector<std::string>& strings) {
  Bytes bytes;
  for (const std::string& s : strings) bytes.string(s);
  file.array(key, MetaType::String, strings.size(), bytes.text());
}

template <class T>
void add_numbers(GgufText& file, std::string_view key, MetaType type, const std::vector<T>& numbers) {
  Bytes bytes;
  for (const T number : numbers) bytes.put(number);
  file.array(key, type, numbers.size(), bytes.text());
}

void add_f32(GgufText& file, const std::string& key, double value) {
  file.entry(key, MetaType::F32, Bytes().put(float(value)).text());
}

void add_flag(GgufText& file, const std::string& key, bool value) {
  file.entry(key, MetaType::Bool, Bytes().put(char(value)).text());
}

void add_vocabulary(const Shape& shape, GgufText& file) {
  const bool pairs = shape.text == TextModel::BytePairs;
  const Vocabulary v = pairs ? byte_pairs(shape.vocabulary) : sentence_pieces(shape.vocabulary);
  const int64_t bos = pairs ? v.size() - 2 : 2, eos = pairs ? v.size() - 1 : 1;
  file.string("tokenizer.ggml.model", pairs ? "gpt2" : "llama").string("tokenizer.ggml.pre", shape.pre);
  add_strings(file, "tokenizer.ggml.tokens", v.tokens);
  add_numbers(file, "tokenizer.ggml.token_type", MetaType::I32, v.types);
  if (pairs) add_strings(file, "tokenizer.ggml.merges", v.merges);
  if (!pairs) add_numbers(file, "tokenizer.ggml.scores", MetaType::F32, v.scores);
  file.u32("tokenizer.ggml.bos_token_id", uint32_t(bos)).u32("tokenizer.ggml.eos_token_id", uint32_t(eos));
  add_flag(file, "tokenizer.ggml.add_bos_token", true);
  if (!pairs) add_flag(file, "tokenizer.ggml.add_space_prefix", false);
}

}  // namespace

void add_metadata(const Shape& shape, GgufText& file) {
  const std::string prefix = std::string(shape.architecture) + '.';
  auto count = [&](std::string_view key, int64_t value) { file.u32(prefix + std::string(key), uint32_t(value)); };
  file.string("general.architecture", shape.architecture);
  file.string("general.name", fmt::format("noise in the shape of {}", shape.name));
  count("context_length", shape.context);
  count("embedding_length", shape.embedding);
  count("block_count", shape.layers);
  count("feed_forward_length", shape.feed_forward);
  count("attention.head_count", shape.heads);
  count("attention.head_count_kv", shape.kv_heads);
  count("attention.key_length", shape.head);
  count("attention.value_length", shape.head);
  count("rope.dimension_count", shape.head);
  if (shape.window > 0) count("attention.sliding_window", shape.window);
  add_f32(file, prefix + "rope.freq_base", shape.rotary_base);
  add_f32(file, prefix + "attention.layer_norm_rms_epsilon", shape.epsilon);
  add_vocabulary(shape, file);
}

}  // namespace lane::noise
