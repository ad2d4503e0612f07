#include <fmt/format.h>

#include <algorithm>

#include "lane/error.h"
#include "lane/vocabulary.h"
#include "runtime/pretokenizer.h"

namespace lane {
namespace {

using LANE_NAMESPACE::ArrayRange;
using LANE_NAMESPACE::kPretokenizers;
using LANE_NAMESPACE::TokenizerModel;

CheckpointError bad(const Checkpoint& checkpoint, uint64_t offset, const std::string& found,
                    const std::string& expected) {
  return CheckpointError(printable(checkpoint.shards.front().path, 4096), offset, found, expected);
}

/// A key that is missing is missed where the header ends.
CheckpointError missing(const Checkpoint& checkpoint, std::string_view key, const std::string& expected) {
  return bad(checkpoint, checkpoint.shards.front().data_start, fmt::format("no key '{}'", key), expected);
}

std::string_view required_string(const Checkpoint& checkpoint, std::string_view key) {
  const auto value = checkpoint.string(key);
  if (!value) throw missing(checkpoint, key, "a vocabulary with it");
  return *value;
}

std::string_view type_name(MetaType type) {
  return type == MetaType::String ? "strings"
         : type == MetaType::F32  ? "f32"
         : type == MetaType::I32  ? "i32"
                                  : "another type";
}

/// The array `key`, of `count` elements unless that is 0; all zero where the key is absent.
ArrayRange array_of(const Checkpoint& checkpoint, std::string_view key, MetaType element, uint64_t count = 0) {
  const MetaEntry* entry = checkpoint.find(key);
  if (entry == nullptr) return {};
  const auto* array = std::get_if<MetaArray>(&entry->value);
  if (array == nullptr || array->element != element) {
    throw bad(checkpoint, entry->offset, fmt::format("'{}' of another type", key),
              fmt::format("an array of {}", type_name(element)));
  }
  if (count != 0 && array->count != count) {
    throw bad(checkpoint, entry->offset, fmt::format("'{}' of {} elements", key, array->count),
              fmt::format("one for each of {} tokens", count));
  }
  return {array->offset, array->count, array->bytes.size()};
}

ArrayRange required_array(const Checkpoint& checkpoint, std::string_view key, MetaType element, uint64_t count = 0) {
  const ArrayRange range = array_of(checkpoint, key, element, count);
  if (range.count != 0) return range;
  const MetaEntry* entry = checkpoint.find(key);
  const std::string expected = fmt::format("an array of {}", type_name(element));
  if (entry == nullptr) throw missing(checkpoint, key, expected);
  throw bad(checkpoint, entry->offset, fmt::format("'{}' without elements", key), expected);
}

/// The id that `tokenizer.ggml.<name>_token_id` gives; `otherwise` where the key is absent and the vocabulary has that
/// id.
int32_t special_id(const Checkpoint& checkpoint, uint64_t tokens, std::string_view name, int32_t otherwise = -1) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const auto id = checkpoint.integer(key);
  if (!id) return otherwise >= 0 && static_cast<uint64_t>(otherwise) < tokens ? otherwise : -1;
  if (*id >= tokens) {
    throw bad(checkpoint, checkpoint.find(key)->offset, fmt::format("'{}' {}", key, *id),
              fmt::format("an id below {}", tokens));
  }
  return static_cast<int32_t>(*id);
}

std::string known_pretokenizers() {
  std::string names;
  for (const auto& row : kPretokenizers) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

int choose_pretokenizer(const Checkpoint& checkpoint, std::string_view pre) {
  const int asked = LANE_NAMESPACE::find_pretokenizer(pre);
  if (!pre.empty() && asked < 0) {
    throw UsageError(
        fmt::format("--pre '{}' is no pre-tokenizer; known are {}", printable(pre), known_pretokenizers()));
  }
  if (!pre.empty()) return asked;
  const auto name = checkpoint.string("tokenizer.ggml.pre");
  // Guessing here gives text that is wrong in places nobody looks at.
  if (!name) {
    throw missing(checkpoint, "tokenizer.ggml.pre",
                  "the name of the pre-tokenizer, there or with --pre; known are " + known_pretokenizers());
  }
  const int row = LANE_NAMESPACE::find_pretokenizer(*name);
  if (row < 0) {
    throw NotYetError(fmt::format("{}: tokenizer.ggml.pre is '{}'; known are {} (--pre overrides)",
                                  printable(checkpoint.shards.front().path, 4096), printable(*name),
                                  known_pretokenizers()));
  }
  return row;
}

bool names_phi3(const Checkpoint& checkpoint) {
  std::string name(checkpoint.string("general.name").value_or(""));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

void describe_spm(const Checkpoint& checkpoint, VocabularySource* s) {
  s->scores = required_array(checkpoint, "tokenizer.ggml.scores", MetaType::F32, s->tokens.count);
  s->bos = special_id(checkpoint, s->tokens.count, "bos", 1);
  s->eos = special_id(checkpoint, s->tokens.count, "eos", 2);
  s->unknown = special_id(checkpoint, s->tokens.count, "unknown", 0);
  s->add_bos = checkpoint.boolean("tokenizer.ggml.add_bos_token").value_or(s->bos >= 0);
  s->add_space_prefix = checkpoint.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
}

void describe_bpe(const Checkpoint& checkpoint, std::string_view pre, VocabularySource* s) {
  s->pretokenizer = choose_pretokenizer(checkpoint, pre);
  s->merges = required_array(checkpoint, "tokenizer.ggml.merges", MetaType::String);
  s->bos = special_id(checkpoint, s->tokens.count, "bos");
  s->eos = special_id(checkpoint, s->tokens.count, "eos");
  s->unknown = special_id(checkpoint, s->tokens.count, "unknown");
  const bool row_adds = kPretokenizers[s->pretokenizer].add_bos && s->bos >= 0;
  s->add_bos = checkpoint.boolean("tokenizer.ggml.add_bos_token").value_or(row_adds);
}

void check_added(const Checkpoint& checkpoint, std::string_view name, bool added, int32_t id) {
  if (!added || id >= 0) return;
  const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
  throw bad(checkpoint, checkpoint.find(key)->offset, fmt::format("'{}' true and no {} id", key, name), "an id to add");
}

}  // namespace

VocabularySource describe_vocabulary(const Checkpoint& checkpoint, std::string_view pre) {
  const std::string_view model = required_string(checkpoint, "tokenizer.ggml.model");
  if (model != "llama" && model != "gpt2") {
    throw NotYetError(
        fmt::format("{}: tokenizer.ggml.model is '{}'; known are llama (SentencePiece) and gpt2 (byte-level BPE)",
                    printable(checkpoint.shards.front().path, 4096), printable(model)));
  }
  VocabularySource s;
  s.model = model == "llama" ? TokenizerModel::Spm : TokenizerModel::Bpe;
  if (s.model == TokenizerModel::Spm && !pre.empty())
    throw UsageError("--pre: a SentencePiece vocabulary has no pre-tokenizer");
  s.tokens = required_array(checkpoint, "tokenizer.ggml.tokens", MetaType::String);
  s.types = array_of(checkpoint, "tokenizer.ggml.token_type", MetaType::I32, s.tokens.count);
  s.model == TokenizerModel::Spm ? describe_spm(checkpoint, &s) : describe_bpe(checkpoint, pre, &s);
  s.add_eos = checkpoint.boolean("tokenizer.ggml.add_eos_token").value_or(false);
  s.eot = special_id(checkpoint, s.tokens.count, "eot");
  s.eom = special_id(checkpoint, s.tokens.count, "eom");
  s.padding = special_id(checkpoint, s.tokens.count, "padding");
  s.fim_padding = special_id(checkpoint, s.tokens.count, "fim_pad");
  s.fim_repository = special_id(checkpoint, s.tokens.count, "fim_rep");
  s.fim_separator = special_id(checkpoint, s.tokens.count, "fim_sep");
  s.strip_after_special = names_phi3(checkpoint);
  check_added(checkpoint, "bos", s.add_bos, s.bos);
  check_added(checkpoint, "eos", s.add_eos, s.eos);
  return s;
}

Vocabulary read_vocabulary(const Checkpoint& checkpoint, const VocabularySource& source) {
  const Shard& shard = checkpoint.shards.front();
  Vocabulary vocabulary;
  const auto status = LANE_NAMESPACE::read_vocabulary(source, reinterpret_cast<const uint8_t*>(shard.bytes.data()),
                                                      shard.bytes.size(), &vocabulary);
  // The message names the key, what was found and what is expected; the refusal's type adds the file and the byte.
  if (!status.ok()) throw bad(checkpoint, source.tokens.offset, status.message, "a sound vocabulary");
  return vocabulary;
}

}  // namespace lane
