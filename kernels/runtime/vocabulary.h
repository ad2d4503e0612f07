// The vocabulary, read from the checkpoint's own bytes at offsets known beforehand: there is no GGUF parser here. The
// bytes may be another file than the one the offsets were taken from, so every read is bounded and every value checked.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespace.h"
#include "runtime/status.h"

namespace LANE_NAMESPACE {

enum class TokenizerModel : uint8_t {
  Spm,  // SentencePiece: `tokenizer.ggml.model` is "llama"
  Bpe,  // byte-level byte-pair encoding: "gpt2"
};

/// `tokenizer.ggml.token_type`, with its numbers.
enum class TokenType : uint8_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

/// The elements of a metadata array, as they lie in the file. Offsets count from the file's start; all zero: absent.
struct ArrayRange {
  uint64_t offset = 0;
  uint64_t count = 0;  // elements
  uint64_t bytes = 0;
};

/// Everything about a vocabulary that is known before its bytes are read. Ids are −1 where there is none.
struct VocabularySource {
  TokenizerModel model = TokenizerModel::Spm;
  int pretokenizer = 0;  // row of kPretokenizers; BPE alone
  ArrayRange tokens;     // strings: u64 length, bytes
  ArrayRange scores;     // float32; SPM alone
  ArrayRange types;      // int32 TokenType; absent: every token is normal
  ArrayRange merges;     // strings "left right", best first; BPE alone
  int32_t bos = -1, eos = -1, eot = -1, eom = -1, unknown = -1, padding = -1;
  int32_t fim_padding = -1, fim_repository = -1, fim_separator = -1;
  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;     // SPM: a space before the text and after each special token
  bool strip_after_special = false;  // white space after a special token is dropped (Phi-3)
};

/// Interned strings: dense ids in the order of their first appearance, found in constant time. Holds views.
class StringTable {
 public:
  int32_t find(std::string_view s) const { return slots_.empty() ? -1 : slots_[slot_of(s)]; }
  int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  std::string_view text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }

  /// The id of `s`, new if `s` is. `s` must stay where it is.
  int32_t add(std::string_view s) {
    if ((texts_.size() + 1) * 2 > slots_.size()) grow();
    const size_t slot = slot_of(s);
    if (slots_[slot] < 0) {
      slots_[slot] = size();
      texts_.push_back(s);
    }
    return slots_[slot];
  }

  /// Takes an id that no look-up finds.
  void add_hidden(std::string_view s) { texts_.push_back(s), hidden_.push_back(size() - 1); }

 private:
  static uint64_t hash(std::string_view s) {
    uint64_t h = 0x9E3779B97F4A7C15u ^ s.size();
    for (; s.size() >= 8; s.remove_prefix(8)) {
      uint64_t word;
      std::memcpy(&word, s.data(), 8);
      h = mix(h ^ word);
    }
    uint64_t word = 0;
    std::memcpy(&word, s.data(), s.size());
    return mix(h ^ word);
  }
  static uint64_t mix(uint64_t h) {
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return (h ^ h >> 29) * 0xA0761D6478BD642Fu ^ h >> 31;
  }
  size_t slot_of(std::string_view s) const {
    size_t slot = hash(s) & (slots_.size() - 1);
    while (slots_[slot] >= 0 && text(slots_[slot]) != s) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow() {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), -1);
    for (int32_t id = 0; id < size(); ++id) {
      if (!std::binary_search(hidden_.begin(), hidden_.end(), id)) slots_[slot_of(text(id))] = id;
    }
  }

  std::vector<std::string_view> texts_;
  std::vector<int32_t> slots_;   // open addressing, a power of two; −1: free
  std::vector<int32_t> hidden_;  // ascending
};

/// What one merge makes of two neighbouring pieces. Lower ranks go first.
struct Merge {
  int32_t rank = 0;
  int32_t piece = 0;
};

/// The merges of a BPE vocabulary: (left piece, right piece) → Merge.
class MergeTable {
 public:
  void reserve(size_t merges) {
    size_t slots = 64;
    while (slots < merges * 2) slots *= 2;
    keys_.assign(slots, kFree);
    values_.resize(slots);
  }
  /// Keeps the first merge of a pair. No more of them than reserved.
  void add(int32_t left, int32_t right, Merge merge) {
    const size_t slot = slot_of(key(left, right));
    if (keys_[slot] != kFree) return;
    keys_[slot] = key(left, right);
    values_[slot] = merge;
  }
  const Merge* find(int32_t left, int32_t right) const {
    if (left < 0 || right < 0 || keys_.empty()) return nullptr;
    const size_t slot = slot_of(key(left, right));
    return keys_[slot] == kFree ? nullptr : &values_[slot];
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t k) const {
    size_t slot = (k * 0x9E3779B97F4A7C15u >> 20) & (keys_.size() - 1);
    while (keys_[slot] != kFree && keys_[slot] != k) slot = (slot + 1) & (keys_.size() - 1);
    return slot;
  }
  std::vector<uint64_t> keys_;
  std::vector<Merge> values_;
};

/// Token ids are 0 to tokens() − 1. A piece is a string that a merge reads or makes: a token's text has its id, others
/// follow.
struct Vocabulary {
  VocabularySource source;
  StringTable pieces;
  std::vector<TokenType> types;           // a token
  std::vector<float> scores;              // a token; empty in BPE
  MergeTable merges;                      // BPE
  std::array<int32_t, 256> byte_piece{};  // SPM: the token <0xNN>; BPE: the piece of the byte's letter; −1: none
  std::vector<int32_t> end_ids;           // ascending: any of them ends the generation
  size_t longest_token = 0;               // bytes
  std::deque<std::string> made;           // texts of pieces that are not whole in the file

  int32_t tokens() const { return static_cast<int32_t>(types.size()); }
  bool is_token(int32_t id) const { return id >= 0 && id < tokens(); }
  TokenType type(int32_t id) const { return types[static_cast<size_t>(id)]; }
  /// The token whose text is `s`; −1 where there is none.
  int32_t find(std::string_view s) const {
    const int32_t id = pieces.find(s);
    return is_token(id) ? id : -1;
  }
  /// A token that plain text may become: not one that steers the model.
  bool is_text(int32_t id) const {
    return is_token(id) && type(id) != TokenType::Control && type(id) != TokenType::Unknown &&
           type(id) != TokenType::Byte;
  }
  bool ends_generation(int32_t id) const { return std::binary_search(end_ids.begin(), end_ids.end(), id); }
};

/// GPT-2's letter of a byte: bytes that print as themselves in Latin-1 stay, the others take 256 and up in order.
/// Source: the byte alphabet of Radford et al., "Language Models are Unsupervised Multitask Learners" (2019),
/// section 2.2.
inline const std::array<uint32_t, 256>& byte_letters() {
  static const std::array<uint32_t, 256> letters = [] {
    std::array<uint32_t, 256> out{};
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool prints = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      out[b] = prints ? b : next++;
    }
    return out;
  }();
  return letters;
}

/// Reads the vocabulary that `source` describes from `bytes`, the checkpoint file's first `size` bytes at least to the
/// end of its metadata; they must outlive `*out`. Refuses (exit 3) ranges outside the file, strings outside their
/// range, types and scores of another count, duplicate tokens, merges without two halves, ids outside the vocabulary.
Status read_vocabulary(const VocabularySource& source, const uint8_t* bytes, uint64_t size, Vocabulary* out);

namespace vocabulary_detail {

/// Walks the strings of one array.
class Strings {
 public:
  Strings(const uint8_t* bytes, const ArrayRange& range)
      : at_(reinterpret_cast<const char*>(bytes) + range.offset), left_(range.bytes) {}
  bool next(std::string_view* out) {
    uint64_t length;
    if (left_ < 8) return false;
    std::memcpy(&length, at_, 8);
    if (length > left_ - 8) return false;
    *out = std::string_view(at_ + 8, static_cast<size_t>(length));
    at_ += 8 + length;
    left_ -= 8 + length;
    return true;
  }

 private:
  const char* at_;
  uint64_t left_;
};

inline Status check_range(const char* key, const ArrayRange& range, uint64_t element_bytes, uint64_t size) {
  const bool fits = range.offset <= size && range.bytes <= size - range.offset && range.count <= INT32_MAX &&
                    range.bytes / element_bytes >= range.count;
  if (fits) return {};
  return checkpoint_error(std::string(key) + ": " + std::to_string(range.count) + " elements of " +
                          std::to_string(range.bytes) + " bytes at byte " + std::to_string(range.offset) +
                          " do not fit a file of " + std::to_string(size) + " bytes");
}

inline Status check_ranges(const VocabularySource& s, uint64_t size) {
  if (s.tokens.count == 0) return checkpoint_error("tokenizer.ggml.tokens is empty or missing");
  Status status = check_range("tokenizer.ggml.tokens", s.tokens, 8, size);
  if (status.ok()) status = check_range("tokenizer.ggml.scores", s.scores, 4, size);
  if (status.ok()) status = check_range("tokenizer.ggml.token_type", s.types, 4, size);
  if (status.ok()) status = check_range("tokenizer.ggml.merges", s.merges, 8, size);
  if (!status.ok()) return status;
  const auto other_count = [&](const char* key, const ArrayRange& range) {
    return checkpoint_error(std::string(key) + " has " + std::to_string(range.count) +
                            " elements; expected one for each of " + std::to_string(s.tokens.count) + " tokens");
  };
  if (s.types.count != 0 && s.types.count != s.tokens.count) return other_count("tokenizer.ggml.token_type", s.types);
  if (s.model == TokenizerModel::Spm && s.scores.count != s.tokens.count)
    return other_count("tokenizer.ggml.scores", s.scores);
  if (s.model == TokenizerModel::Bpe && s.merges.count == 0)
    return checkpoint_error("tokenizer.ggml.merges is empty or missing");
  return {};
}

inline Status check_ids(const VocabularySource& s) {
  const struct {
    const char* key;
    int32_t id;
  } ids[] = {{"bos", s.bos},
             {"eos", s.eos},
             {"eot", s.eot},
             {"eom", s.eom},
             {"unknown", s.unknown},
             {"padding", s.padding},
             {"fim_pad", s.fim_padding},
             {"fim_rep", s.fim_repository},
             {"fim_sep", s.fim_separator}};
  for (const auto& one : ids) {
    if (one.id < -1 || (one.id >= 0 && static_cast<uint64_t>(one.id) >= s.tokens.count)) {
      return checkpoint_error(std::string("tokenizer.ggml.") + one.key + "_token_id is " + std::to_string(one.id) +
                              "; expected an id below " + std::to_string(s.tokens.count));
    }
  }
  if (s.add_bos && s.bos < 0)
    return checkpoint_error("tokenizer.ggml.add_bos_token is set and there is no bos_token_id");
  if (s.add_eos && s.eos < 0)
    return checkpoint_error("tokenizer.ggml.add_eos_token is set and there is no eos_token_id");
  return {};
}

inline Status read_tokens(const uint8_t* bytes, Vocabulary* v) {
  Strings strings(bytes, v->source.tokens);
  for (uint64_t i = 0; i < v->source.tokens.count; ++i) {
    std::string_view text;
    if (!strings.next(&text))
      return checkpoint_error("tokenizer.ggml.tokens: token " + std::to_string(i) + " runs past the array");
    v->longest_token = std::max(v->longest_token, text.size());
    if (text.empty()) {
      v->pieces.add_hidden(text);  // some files pad with empty tokens: they have ids and nothing finds them
    } else if (const int32_t id = v->pieces.add(text); static_cast<uint64_t>(id) != i) {
      return checkpoint_error("tokenizer.ggml.tokens: tokens " + std::to_string(id) + " and " + std::to_string(i) +
                              " are the same text; expected each once");
    }
  }
  return {};
}

inline Status read_types(const uint8_t* bytes, Vocabulary* v) {
  const VocabularySource& s = v->source;
  const size_t count = static_cast<size_t>(s.tokens.count);
  v->types.assign(count, TokenType::Normal);
  for (size_t i = 0; i < std::min(count, static_cast<size_t>(s.types.count)); ++i) {
    int32_t type;
    std::memcpy(&type, bytes + s.types.offset + i * 4, 4);
    if (type < 1 || type > 6) {
      return checkpoint_error("tokenizer.ggml.token_type: token " + std::to_string(i) + " has type " +
                              std::to_string(type) + "; expected 1 to 6");
    }
    v->types[i] = static_cast<TokenType>(type);
  }
  return {};
}

inline Status read_scores(const uint8_t* bytes, Vocabulary* v) {
  const size_t count = static_cast<size_t>(v->source.scores.count);
  v->scores.resize(count);
  if (count != 0) std::memcpy(v->scores.data(), bytes + v->source.scores.offset, count * 4);
  for (size_t i = 0; i < count; ++i) {
    if (v->scores[i] != v->scores[i])
      return checkpoint_error("tokenizer.ggml.scores: the score of token " + std::to_string(i) + " is NaN");
  }
  return {};
}

inline Status read_merges(const uint8_t* bytes, Vocabulary* v) {
  const auto intern = [&](std::string_view s) { return v->pieces.add(s); };
  Strings strings(bytes, v->source.merges);
  v->merges.reserve(static_cast<size_t>(v->source.merges.count));
  std::string whole;
  for (uint64_t rank = 0; rank < v->source.merges.count; ++rank) {
    std::string_view text;
    const bool read = strings.next(&text);
    const size_t space = read ? text.find(' ', 1) : std::string_view::npos;
    if (space == std::string_view::npos || space + 1 == text.size()) {
      return checkpoint_error("tokenizer.ggml.merges: merge " + std::to_string(rank) +
                              " is not two pieces with a space between");
    }
    const std::string_view left = text.substr(0, space), right = text.substr(space + 1);
    whole.assign(left).append(right);
    int32_t piece = v->pieces.find(whole);
    if (piece < 0) piece = intern(v->made.emplace_back(whole));
    v->merges.add(intern(left), intern(right), {static_cast<int32_t>(rank), piece});
  }
  return {};
}

inline void find_byte_pieces(Vocabulary* v) {
  for (uint32_t b = 0; b < 256; ++b) {
    std::string name;
    if (v->source.model == TokenizerModel::Bpe) {
      // Latin-1 and the letters after it take one or two bytes of UTF-8.
      const uint32_t c = byte_letters()[b];
      if (c >= 0x80) name.push_back(static_cast<char>(0xC0 | c >> 6));
      name.push_back(static_cast<char>(c < 0x80 ? c : 0x80 | (c & 0x3F)));
      v->byte_piece[b] = v->pieces.find(name);
    } else {
      const char* digits = "0123456789ABCDEF";
      name = std::string("<0x") + digits[b >> 4] + digits[b & 15] + ">";
      v->byte_piece[b] = v->find(name);
    }
  }
}

/// Texts that end a turn or a document in the models people use: many files name only one of theirs as eos.
inline void find_end_ids(Vocabulary* v) {
  static constexpr const char* kEndTexts[] = {"<|eot_id|>",
                                              "<|im_end|>",
                                              "<|end|>",
                                              "<|return|>",
                                              "<|call|>",
                                              "<|flush|>",
                                              "<|calls|>",
                                              "<end_of_turn>",
                                              "<|endoftext|>",
                                              "</s>",
                                              "<|eom_id|>",
                                              "<EOT>",
                                              "_<EOT>",
                                              "[EOT]",
                                              "[EOS]",
                                              "<|end_of_text|>",
                                              "<end_of_utterance>",
                                              "<eos>",
                                              "<turn|>",
                                              "<|tool_response>",
                                              "<\xEF\xBD\x9C"
                                              "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
                                              "[e~["};
  const VocabularySource& s = v->source;
  // gpt-oss: with these two, <|end|> only closes a message.
  const bool harmony = v->find("<|return|>") >= 0 && v->find("<|call|>") >= 0;
  std::vector<int32_t> ids = {s.eos, s.eot, s.eom, s.fim_padding, s.fim_repository, s.fim_separator};
  for (std::string_view text : kEndTexts) {
    const int32_t id = v->find(text);
    if (id < 0 || (harmony && text == "<|end|>")) continue;
    v->types[static_cast<size_t>(id)] = TokenType::Control;  // whatever the file says: it must not be printed
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!ids.empty() && ids.front() < 0) ids.erase(ids.begin());
  v->end_ids = std::move(ids);
}

}  // namespace vocabulary_detail

inline Status read_vocabulary(const VocabularySource& source, const uint8_t* bytes, uint64_t size, Vocabulary* out) {
  using namespace vocabulary_detail;
  *out = Vocabulary();
  out->source = source;
  Status status = check_ranges(source, size);
  if (status.ok()) status = check_ids(source);
  if (status.ok()) status = read_tokens(bytes, out);
  if (status.ok()) status = read_types(bytes, out);
  if (status.ok() && source.model == TokenizerModel::Spm) status = read_scores(bytes, out);
  if (status.ok() && source.model == TokenizerModel::Bpe) status = read_merges(bytes, out);
  if (!status.ok()) return status;
  find_byte_pieces(out);
  find_end_ids(out);
  return {};
}

}  // namespace LANE_NAMESPACE
