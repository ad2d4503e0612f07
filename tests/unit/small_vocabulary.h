// Vocabulary-only checkpoints small enough to read whole in a test.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lane/vocabulary.h"
#include "support/files.h"
#include "support/gguf_builder.h"

namespace lane::test {

struct SmallToken {
  std::string text;
  int type = 1;  // LANE_NAMESPACE::TokenType
  float score = 0;
};

/// A checkpoint of metadata alone. Keys that a test overrules are added by it, and `without` names keys left out.
struct VocabularyText {
  std::string model = "llama";
  std::string pre = "gpt-2";
  std::vector<SmallToken> tokens;
  std::vector<std::string> merges;
  std::vector<std::string> without;
  GgufText extra;

  std::string text() const;
};

/// SentencePiece: <unk> 0, <s> 1, </s> 2, the bytes' tokens at 3, then `more` from 259.
VocabularyText spm_vocabulary(const std::vector<SmallToken>& more);
/// Byte-level BPE: the bytes' letters from 0, `more` from 256, </s> at the end as eos and bos.
VocabularyText bpe_vocabulary(const std::vector<SmallToken>& more, const std::vector<std::string>& merges);

/// A vocabulary with the checkpoint that its views point into.
struct OpenVocabulary {
  std::unique_ptr<TempFolder> folder;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Vocabulary> vocabulary;
  const Vocabulary& operator*() const { return *vocabulary; }
};
OpenVocabulary open_vocabulary(const VocabularyText& text, std::string_view pre = {});

}  // namespace lane::test
