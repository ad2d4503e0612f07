#include "unit/small_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/unicode.h"

namespace lane::test {
namespace {

std::string strings(const std::vector<std::string>& all) {
  Bytes bytes;
  for (const std::string& s : all) bytes.string(s);
  return bytes.text();
}

template <class T>
std::string numbers(const std::vector<T>& all) {
  Bytes bytes;
  for (T n : all) bytes.put(n);
  return bytes.text();
}

}  // namespace

std::string VocabularyText::text() const {
  GgufText file = extra;
  const auto wanted = [&](const char* key) { return std::find(without.begin(), without.end(), key) == without.end(); };
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;
  for (const SmallToken& t : tokens) texts.push_back(t.text), types.push_back(t.type), scores.push_back(t.score);
  file.string("general.architecture", "none");
  if (wanted("model")) file.string("tokenizer.ggml.model", model);
  if (wanted("pre")) file.string("tokenizer.ggml.pre", pre);
  if (wanted("tokens")) file.array("tokenizer.ggml.tokens", MetaType::String, texts.size(), strings(texts));
  if (wanted("token_type")) file.array("tokenizer.ggml.token_type", MetaType::I32, types.size(), numbers(types));
  if (wanted("scores")) file.array("tokenizer.ggml.scores", MetaType::F32, scores.size(), numbers(scores));
  if (wanted("merges")) file.array("tokenizer.ggml.merges", MetaType::String, merges.size(), strings(merges));
  return file.text();
}

VocabularyText spm_vocabulary(const std::vector<SmallToken>& more) {
  VocabularyText out;
  out.tokens = {{"<unk>", 2}, {"<s>", 3}, {"</s>", 3}};
  for (int b = 0; b < 256; ++b) out.tokens.push_back({fmt::format("<0x{:02X}>", b), 6});
  out.tokens.insert(out.tokens.end(), more.begin(), more.end());
  return out;
}

VocabularyText bpe_vocabulary(const std::vector<SmallToken>& more, const std::vector<std::string>& merges) {
  VocabularyText out;
  out.model = "gpt2";
  out.merges = merges;
  for (uint32_t letter : LANE_NAMESPACE::byte_letters()) {
    std::string text;
    LANE_NAMESPACE::append_utf8(&text, letter);
    out.tokens.push_back({text});
  }
  out.tokens.insert(out.tokens.end(), more.begin(), more.end());
  out.extra.u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(out.tokens.size()));
  out.extra.u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(out.tokens.size()));
  out.tokens.push_back({"</s>", 3});
  return out;
}

OpenVocabulary open_vocabulary(const VocabularyText& text, std::string_view pre) {
  OpenVocabulary out;
  out.folder = std::make_unique<TempFolder>();
  write_file(*out.folder / "vocabulary.gguf", text.text());
  out.checkpoint = std::make_unique<Checkpoint>(read_checkpoint(*out.folder / "vocabulary.gguf"));
  out.vocabulary =
      std::make_unique<Vocabulary>(read_vocabulary(*out.checkpoint, describe_vocabulary(*out.checkpoint, pre)));
  return out;
}

}  // namespace lane::test
