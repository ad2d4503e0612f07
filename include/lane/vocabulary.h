// The vocabulary at compile time: from a checkpoint's metadata to the numbers that an emitted program reads its tokens
// by. The reading itself, the tokenizer and the detokenizer are kernels/runtime's: one source for lanec and for its
// programs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lane/gguf.h"
#include "runtime/vocabulary.h"

namespace lane {

using LANE_NAMESPACE::Vocabulary;
using LANE_NAMESPACE::VocabularySource;

/// Where the vocabulary lies and how it is used. `pre`, where not empty, stands for the checkpoint's
/// tokenizer.ggml.pre. Works on any architecture. Throws NotYetError for a tokenizer model or pre-tokenizer that lanec
/// does not know, CheckpointError for keys that are missing, of another type or length, and ids out of range,
/// UsageError for a `pre` that is unknown or has no meaning here.
VocabularySource describe_vocabulary(const Checkpoint& checkpoint, std::string_view pre = {});

/// The vocabulary itself, holding views into the checkpoint's mapping, which must outlive it. Throws CheckpointError
/// for what only the strings show: duplicate tokens, merges without two halves, ranges that disagree with their counts.
Vocabulary read_vocabulary(const Checkpoint& checkpoint, const VocabularySource& source);

/// All that the two above would throw, each with its type's name: where they stop at the first, this goes on. Of what
/// only the strings show, the first fault of each array.
std::vector<std::string> survey_vocabulary(const Checkpoint& checkpoint, std::string_view pre = {});

/// `source` as C++: a definition of `constexpr VocabularySource NAME`, of numbers alone.
std::string to_cpp(const VocabularySource& source, std::string_view name);

/// What `lanec tokenize` prints: the ids of `text` as a JSON list. `bos`: begin and end tokens where the vocabulary
/// asks for them; `specials`: control tokens spelled out in the text are those tokens.
std::string tokenize_json(const Vocabulary& vocabulary, std::string_view text, bool bos, bool specials);

}  // namespace lane
