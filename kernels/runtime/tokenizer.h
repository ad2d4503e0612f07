// Text to token ids. First the text is cut at special tokens; what lies between goes through SentencePiece or
// byte-level BPE. Both merge neighbouring symbols, best merge first, with a heap: n log n in the length, constant
// stack.
#pragma once
#include <algorithm>
#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/namespace.h"
#include "runtime/pretokenizer.h"
#include "runtime/status.h"
#include "runtime/unicode.h"
#include "runtime/vocabulary.h"

namespace LANE_NAMESPACE {

/// Texts are shorter than this many bytes: positions in them are 32-bit, a space of SentencePiece takes three.
constexpr size_t kLongestText = size_t{1} << 30;

struct EncodeOptions {
  bool bos = true;       // begin and end tokens, where the vocabulary asks for them
  bool specials = true;  // control tokens spelled out in the text are those tokens; false: they are text
};

namespace tokenizer_detail {

/// Symbols of one word as a doubly linked list in text order; a merge widens the left one and unlinks the right.
struct Symbol {
  uint32_t begin = 0, length = 0;  // bytes; length 0: merged away
  int32_t piece = -1;              // BPE alone
  int32_t previous = -1, next = -1;
};

/// A merge that was possible when it was found: stale if either symbol has changed since.
template <class Key>
struct Candidate {
  Key key;  // smaller is better
  int32_t left, right;
  uint32_t left_length, right_length;
  int32_t piece;
  bool operator<(const Candidate& other) const {  // std::priority_queue puts the greatest first; ties go leftmost
    return key != other.key ? key > other.key : left > other.left;
  }
};

/// Merges until nothing can be: `find(left, right, &key, &piece)` says whether two neighbours may merge, how good that
/// is and what they become.
template <class Key, class Find>
void merge_symbols(std::vector<Symbol>* symbols, const Find& find) {
  std::priority_queue<Candidate<Key>> queue;
  std::vector<Symbol>& s = *symbols;
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    Candidate<Key> c{};
    if (!find(s[left], s[right], &c.key, &c.piece)) return;
    c.left = left, c.right = right, c.left_length = s[left].length, c.right_length = s[right].length;
    queue.push(c);
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(s.size()); ++i) consider(i, i + 1);
  while (!queue.empty()) {
    const Candidate<Key> c = queue.top();
    queue.pop();
    Symbol& left = s[c.left];
    Symbol& right = s[c.right];
    if (left.length != c.left_length || right.length != c.right_length) continue;
    left.length += right.length;
    left.piece = c.piece;
    left.next = right.next;
    if (right.next >= 0) s[right.next].previous = c.left;
    right.length = 0;
    consider(left.previous, c.left);
    consider(c.left, left.next);
  }
}

inline void append_symbol(std::vector<Symbol>* symbols, size_t begin, size_t length, int32_t piece) {
  const int32_t i = static_cast<int32_t>(symbols->size());
  if (i > 0) symbols->back().next = i;
  symbols->push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(length), piece, i - 1, -1});
}

/// Bytes of the character that begins with `first`. Continuations are not looked at: of bytes that are no UTF-8 a
/// SentencePiece vocabulary's own symbols are made in this way, and what they swallow is spelled in byte tokens.
inline size_t symbol_length(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// A stretch of the input: either a special token, or text that holds none.
struct Fragment {
  std::string_view text;
  int32_t token = -1;
};

}  // namespace tokenizer_detail

/// Encodes texts with one vocabulary, which must outlive it.
class Tokenizer {
 public:
  explicit Tokenizer(const Vocabulary& vocabulary) : v_(vocabulary) { index_specials(); }

  /// The ids of `text`, appended to `*ids`. Bytes that are no UTF-8 are encoded too: SPM spells them in byte tokens,
  /// BPE as U+FFFD. Refuses texts of 1 GiB and more.
  Status encode(std::string_view text, const EncodeOptions& options, std::vector<int32_t>* ids) const {
    if (text.size() >= kLongestText) {
      return usage_error("a text of " + std::to_string(text.size()) + " bytes; accepted are less than 1 GiB");
    }
    if (options.bos && v_.source.add_bos) ids->push_back(v_.source.bos);
    bool after_special = true;  // the start counts: a space goes before the first word as well
    for (const Fragment& f : cut_specials(text, options.specials)) {
      if (f.token >= 0) {
        ids->push_back(f.token);
      } else if (v_.source.model == TokenizerModel::Spm) {
        encode_spm(f.text, after_special && v_.source.add_space_prefix, ids);
      } else {
        encode_bpe(f.text, ids);
      }
      after_special = f.token >= 0;
    }
    if (options.bos && v_.source.add_eos) ids->push_back(v_.source.eos);
    return {};
  }

 private:
  using Fragment = tokenizer_detail::Fragment;
  using Symbol = tokenizer_detail::Symbol;

  /// Special tokens of one length in bytes.
  struct Specials {
    std::unordered_map<std::string_view, int32_t> ids;
    bool starts[256] = {};  // first bytes: most positions of a text fail here
  };

  // Longest first.
  struct Length {
    size_t bytes;
    Specials all, user_defined;
  };

  void index_specials() {
    std::vector<std::pair<size_t, int32_t>> found;
    for (int32_t id = 0; id < v_.tokens(); ++id) {
      const TokenType type = v_.type(id);
      const bool special = type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
      if (special && !v_.pieces.text(id).empty()) found.push_back({v_.pieces.text(id).size(), id});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (const auto& [bytes, id] : found) {
      if (specials_.empty() || specials_.back().bytes != bytes) specials_.push_back({bytes, {}, {}});
      add_special(&specials_.back().all, id);
      if (v_.type(id) == TokenType::UserDefined) add_special(&specials_.back().user_defined, id);
    }
  }

  void add_special(Specials* specials, int32_t id) const {
    const std::string_view text = v_.pieces.text(id);
    specials->ids.emplace(text, id);
    specials->starts[static_cast<uint8_t>(text[0])] = true;
  }

  /// Longer special tokens first, each from the left. Tokens that steer the model count only where `specials` says so;
  /// tokens that the vocabulary's user defined always do.
  std::vector<Fragment> cut_specials(std::string_view text, bool specials) const {
    std::vector<Fragment> fragments;
    if (!text.empty()) fragments.push_back({text, -1});
    for (const Length& length : specials_) {
      const Specials& these = specials ? length.all : length.user_defined;
      if (these.ids.empty()) continue;
      std::vector<Fragment> cut;
      for (const Fragment& f : fragments) {
        if (f.token >= 0) {
          cut.push_back(f);
        } else {
          cut_fragment(f.text, length.bytes, these, &cut);
        }
      }
      fragments.swap(cut);
    }
    return fragments;
  }

  void cut_fragment(std::string_view text, size_t bytes, const Specials& specials, std::vector<Fragment>* out) const {
    size_t gap = 0, at = 0;
    while (at + bytes <= text.size()) {
      if (!specials.starts[static_cast<uint8_t>(text[at])]) {
        ++at;
        continue;
      }
      const auto found = specials.ids.find(text.substr(at, bytes));
      if (found == specials.ids.end()) {
        ++at;
        continue;
      }
      if (gap < at) out->push_back({text.substr(gap, at - gap), -1});
      out->push_back({{}, found->second});
      at += bytes;
      if (strips_after(found->second)) {
        while (at < text.size() && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r'))) ++at;
      }
      gap = at;
    }
    if (gap < text.size()) out->push_back({text.substr(gap), -1});
  }

  bool strips_after(int32_t id) const {
    if (!v_.source.strip_after_special) return false;
    const std::string_view text = v_.pieces.text(id);
    return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
  }

  void encode_spm(std::string_view raw, bool space_before, std::vector<int32_t>* ids) const {
    std::string text = space_before ? "\xE2\x96\x81" : "";
    for (char c : raw) c == ' ' ? text.append("\xE2\x96\x81") : text.append(1, c);
    std::vector<Symbol> symbols;
    for (size_t at = 0; at < text.size();) {
      const size_t length = std::min(tokenizer_detail::symbol_length(text[at]), text.size() - at);
      tokenizer_detail::append_symbol(&symbols, at, length, -1);
      at += length;
    }
    const auto token_of = [&](size_t begin, size_t length) {
      if (length > v_.longest_token) return -1;
      const int32_t id = v_.find(std::string_view(text).substr(begin, length));
      return v_.is_text(id) ? id : -1;
    };
    // The pair that makes the token of the greatest score goes first: negated, as smaller keys win.
    tokenizer_detail::merge_symbols<float>(&symbols, [&](const Symbol& a, const Symbol& b, float* key, int32_t* piece) {
      const int32_t id = token_of(a.begin, a.length + b.length);
      if (id < 0) return false;
      *key = -v_.scores[static_cast<size_t>(id)];
      *piece = id;
      return true;
    });
    for (const Symbol& s : symbols) {
      if (s.length == 0) continue;
      const int32_t id = token_of(s.begin, s.length);
      id >= 0 ? ids->push_back(id) : append_bytes(std::string_view(text).substr(s.begin, s.length), ids);
    }
  }

  void encode_bpe(std::string_view raw, std::vector<int32_t>* ids) const {
    const PretokenizerRow& row = kPretokenizers[v_.source.pretokenizer];
    const std::string text = replace_invalid_utf8(raw);
    std::vector<Symbol> symbols;
    std::string letters;
    size_t begin = 0;
    for (size_t end : pretokenize(row, code_points(text))) {
      const std::string_view word = std::string_view(text).substr(begin, end - begin);
      if (!row.ignore_merges || !append_whole_word(word, &letters, ids)) encode_word(word, &symbols, ids);
      begin = end;
    }
  }

  bool append_whole_word(std::string_view word, std::string* letters, std::vector<int32_t>* ids) const {
    if (word.size() > v_.longest_token) return false;
    letters->clear();
    for (char byte : word) append_utf8(letters, byte_letters()[static_cast<uint8_t>(byte)]);
    const int32_t id = v_.find(*letters);
    if (!v_.is_text(id)) return false;
    ids->push_back(id);
    return true;
  }

  void encode_word(std::string_view word, std::vector<Symbol>* symbols, std::vector<int32_t>* ids) const {
    symbols->clear();
    for (size_t i = 0; i < word.size(); ++i) {
      tokenizer_detail::append_symbol(symbols, i, 1, v_.byte_piece[static_cast<uint8_t>(word[i])]);
    }
    tokenizer_detail::merge_symbols<int32_t>(symbols,
                                             [&](const Symbol& a, const Symbol& b, int32_t* key, int32_t* piece) {
                                               const Merge* merge = v_.merges.find(a.piece, b.piece);
                                               if (merge == nullptr) return false;
                                               *key = merge->rank;
                                               *piece = merge->piece;
                                               return true;
                                             });
    for (const Symbol& s : *symbols) {
      if (s.length == 0) continue;
      v_.is_text(s.piece) ? ids->push_back(s.piece) : append_bytes(word.substr(s.begin, s.length), ids);
    }
  }

  /// A stretch that is no token, byte by byte. A byte that is none either becomes the unknown token, or nothing where
  /// the vocabulary has no such token.
  void append_bytes(std::string_view bytes, std::vector<int32_t>* ids) const {
    for (char byte : bytes) {
      const int32_t piece = v_.byte_piece[static_cast<uint8_t>(byte)];
      const int32_t id = v_.is_token(piece) ? piece : v_.source.unknown;
      if (id >= 0) ids->push_back(id);
    }
  }

  const Vocabulary& v_;
  std::vector<Length> specials_;
};

}  // namespace LANE_NAMESPACE
