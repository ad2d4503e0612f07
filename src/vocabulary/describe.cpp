#include <fmt/format.h>

#include <algorithm>

#include "lane/error.h"
#include "lane/refusals.h"
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

std::string_view elements_name(MetaType type) {
  return type == MetaType::String ? "strings"
         : type == MetaType::F32  ? "f32"
         : type == MetaType::I32  ? "i32"
                                  : "another type";
}

/// What the vocabulary is read from, and where its refusals go.
struct Source {
  const Checkpoint& checkpoint;
  Refusals& refusals;
};

/// The array `key`, of `count` elements unless that is 0; all zero where the key is absent.
ArrayRange array_of(const Source& source, std::string_view key, MetaType element, uint64_t count = 0) {
  const MetaEntry* entry = source.checkpoint.find(key);
  if (entry == nullptr) return {};
  const auto* array = std::get_if<MetaArray>(&entry->value);
  if (array == nullptr || array->element != element) {
    source.refusals.add(bad(source.checkpoint, entry->offset, fmt::format("'{}' of type {}", key, type_name(*entry)),
                            fmt::format("an array of {}", elements_name(element))));
    return {};
  }
  if (count != 0 && array->count != count) {
    source.refusals.add(bad(source.checkpoint, entry->offset, fmt::format("'{}' of {} elements", key, array->count),
                            fmt::format("one for each of {} tokens", count)));
  }
  return {array->offset, array->count, array->bytes.size()};
}

ArrayRange required_array(const Source& source, std::string_view key, MetaType element, uint64_t count = 0) {
  const MetaEntry* entry = source.checkpoint.find(key);
  const std::string expected = fmt::format("an array of {}", elements_name(element));
  if (entry == nullptr) source.refusals.add(missing(source.checkpoint, key, expected));
  const auto* array = entry ? std::get_if<MetaArray>(&entry->value) : nullptr;
  if (array != nullptr && array->element == element && array->count == 0)
    source.refusals.add(bad(source.checkpoint, entry->offset, fmt::format("'{}' without elements", key), expected));
  return array_of(source, key, element, count);
}

bool flag(const Source& source, std::string_view key, bool otherwise) {
  return source.refusals.attempt([&] { return source.checkpoint.boolean(key); }).value_or(otherwise);
}

/// The id that `tokenizer.ggml.<name>_token_id` gives; `otherwise` where the key is absent and the vocabulary has that
/// id.
int32_t special_id(const Source& source, uint64_t tokens, std::string_view name, int32_t otherwise = -1) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const auto id = source.refusals.attempt([&] { return source.checkpoint.integer(key); });
  if (!id) return otherwise >= 0 && static_cast<uint64_t>(otherwise) < tokens ? otherwise : -1;
  if (*id < tokens) return static_cast<int32_t>(*id);
  // Without the tokens, no id is known to be beyond them.
  if (tokens != 0)
    source.refusals.add(bad(source.checkpoint, source.checkpoint.find(key)->offset, fmt::format("'{}' {}", key, *id),
                            fmt::format("an id below {}", tokens)));
  return -1;
}

std::string known_pretokenizers() {
  std::string names;
  for (const auto& row : kPretokenizers) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

/// 0 where none is found and refusals are kept.
int choose_pretokenizer(const Source& source, std::string_view pre) {
  const Checkpoint& checkpoint = source.checkpoint;
  const int asked = LANE_NAMESPACE::find_pretokenizer(pre);
  if (!pre.empty() && asked < 0)
    source.refusals.add(
        UsageError(fmt::format("--pre '{}' is no pre-tokenizer; known are {}", printable(pre), known_pretokenizers())));
  if (!pre.empty()) return std::max(asked, 0);
  const auto name = source.refusals.attempt([&] { return checkpoint.string("tokenizer.ggml.pre"); });
  // Guessing here gives text that is wrong in places nobody looks at.
  if (checkpoint.find("tokenizer.ggml.pre") == nullptr)
    source.refusals.add(
        missing(checkpoint, "tokenizer.ggml.pre",
                "the name of the pre-tokenizer, there or with --pre; known are " + known_pretokenizers()));
  const int row = LANE_NAMESPACE::find_pretokenizer(name.value_or(""));
  if (name && row < 0)
    source.refusals.add(NotYetError(fmt::format("{}: tokenizer.ggml.pre is '{}'; known are {} (--pre overrides)",
                                                printable(checkpoint.shards.front().path, 4096), printable(*name),
                                                known_pretokenizers())));
  return std::max(row, 0);
}

bool names_phi3(const Checkpoint& checkpoint) {
  std::string name(checkpoint.string("general.name").value_or(""));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

void describe_spm(const Source& source, VocabularySource* s) {
  s->scores = required_array(source, "tokenizer.ggml.scores", MetaType::F32, s->tokens.count);
  s->bos = special_id(source, s->tokens.count, "bos", 1);
  s->eos = special_id(source, s->tokens.count, "eos", 2);
  s->unknown = special_id(source, s->tokens.count, "unknown", 0);
  s->add_bos = flag(source, "tokenizer.ggml.add_bos_token", s->bos >= 0);
  s->add_space_prefix = flag(source, "tokenizer.ggml.add_space_prefix", true);
}

void describe_bpe(const Source& source, std::string_view pre, VocabularySource* s) {
  s->pretokenizer = choose_pretokenizer(source, pre);
  s->merges = required_array(source, "tokenizer.ggml.merges", MetaType::String);
  s->bos = special_id(source, s->tokens.count, "bos");
  s->eos = special_id(source, s->tokens.count, "eos");
  s->unknown = special_id(source, s->tokens.count, "unknown");
  s->add_bos = flag(source, "tokenizer.ggml.add_bos_token", kPretokenizers[s->pretokenizer].add_bos && s->bos >= 0);
}

/// What an unknown tokenizer has in common with others, where the file has it: what else it needs is not known.
void check_common(const Source& source, uint64_t tokens) {
  array_of(source, "tokenizer.ggml.scores", MetaType::F32, tokens);
  array_of(source, "tokenizer.ggml.merges", MetaType::String);
  source.refusals.attempt([&] { return source.checkpoint.string("tokenizer.ggml.pre"); });
  for (std::string_view name : {"bos", "eos", "unknown"}) special_id(source, tokens, name);
  flag(source, "tokenizer.ggml.add_bos_token", false);
}

/// An id that is there and is refused itself is not missed.
void check_added(const Source& source, std::string_view name, bool added, int32_t id) {
  const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
  const MetaEntry* entry = source.checkpoint.find(key);
  const bool refused = source.checkpoint.find(fmt::format("tokenizer.ggml.{}_token_id", name)) != nullptr;
  if (!added || id >= 0 || refused || entry == nullptr) return;
  source.refusals.add(
      bad(source.checkpoint, entry->offset, fmt::format("'{}' true and no {} id", key, name), "an id to add"));
}

std::optional<TokenizerModel> model_of(const Source& source) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const Checkpoint& checkpoint = source.checkpoint;
  const auto model = source.refusals.attempt([&] { return checkpoint.string(kKey); });
  if (checkpoint.find(kKey) == nullptr) source.refusals.add(missing(checkpoint, kKey, "a vocabulary with it"));
  if (model == "llama") return TokenizerModel::Spm;
  if (model == "gpt2") return TokenizerModel::Bpe;
  if (model)
    source.refusals.add(NotYetError(
        fmt::format("{}: tokenizer.ggml.model is '{}'; known are llama (SentencePiece) and gpt2 (byte-level BPE)",
                    printable(checkpoint.shards.front().path, 4096), printable(*model))));
  return std::nullopt;
}

VocabularySource describe(const Source& source, std::string_view pre) {
  const Checkpoint& checkpoint = source.checkpoint;
  VocabularySource s;
  const auto model = model_of(source);
  s.model = model.value_or(TokenizerModel::Bpe);
  if (s.model == TokenizerModel::Spm && !pre.empty())
    source.refusals.add(UsageError("--pre: a SentencePiece vocabulary has no pre-tokenizer"));
  s.tokens = required_array(source, "tokenizer.ggml.tokens", MetaType::String);
  s.types = array_of(source, "tokenizer.ggml.token_type", MetaType::I32, s.tokens.count);
  if (model == TokenizerModel::Spm) describe_spm(source, &s);
  if (model == TokenizerModel::Bpe) describe_bpe(source, pre, &s);
  if (!model) check_common(source, s.tokens.count);
  s.add_eos = flag(source, "tokenizer.ggml.add_eos_token", false);
  s.eot = special_id(source, s.tokens.count, "eot");
  s.eom = special_id(source, s.tokens.count, "eom");
  s.padding = special_id(source, s.tokens.count, "padding");
  s.fim_padding = special_id(source, s.tokens.count, "fim_pad");
  s.fim_repository = special_id(source, s.tokens.count, "fim_rep");
  s.fim_separator = special_id(source, s.tokens.count, "fim_sep");
  s.strip_after_special = names_phi3(checkpoint);
  check_added(source, "bos", s.add_bos, s.bos);
  check_added(source, "eos", s.add_eos, s.eos);
  return s;
}

/// The message names the key, what was found and what is expected; the refusal's type adds the file and the byte.
void check(const Source& source, const VocabularySource& s, const LANE_NAMESPACE::Status& status) {
  if (!status.ok()) source.refusals.add(bad(source.checkpoint, s.tokens.offset, status.message, "a sound vocabulary"));
}

}  // namespace

VocabularySource describe_vocabulary(const Checkpoint& checkpoint, std::string_view pre) {
  Refusals refusals(Refusals::Mode::Throw);
  return describe({checkpoint, refusals}, pre);
}

Vocabulary read_vocabulary(const Checkpoint& checkpoint, const VocabularySource& source) {
  const Shard& shard = checkpoint.shards.front();
  Refusals refusals(Refusals::Mode::Throw);
  Vocabulary vocabulary;
  check({checkpoint, refusals}, source,
        LANE_NAMESPACE::read_vocabulary(source, reinterpret_cast<const uint8_t*>(shard.bytes.data()),
                                        shard.bytes.size(), &vocabulary));
  return vocabulary;
}

std::vector<std::string> survey_vocabulary(const Checkpoint& checkpoint, std::string_view pre) {
  namespace detail = LANE_NAMESPACE::vocabulary_detail;
  Refusals refusals(Refusals::Mode::Keep);
  const Source source{checkpoint, refusals};
  Vocabulary vocabulary;
  vocabulary.source = describe(source, pre);
  const auto* bytes = reinterpret_cast<const uint8_t*>(checkpoint.shards.front().bytes.data());
  // An array that is refused is empty by now, and has nothing to read.
  check(source, vocabulary.source, detail::read_tokens(bytes, &vocabulary));
  check(source, vocabulary.source, detail::read_types(bytes, &vocabulary));
  check(source, vocabulary.source, detail::read_scores(bytes, &vocabulary));
  check(source, vocabulary.source, detail::read_merges(bytes, &vocabulary));
  return refusals.kept();
}

}  // namespace lane
