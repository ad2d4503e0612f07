#include <fmt/format.h>

#include "lane/error.h"
#include "lane/vocabulary.h"
#include "runtime/pretokenizer.h"
#include "runtime/tokenizer.h"

namespace lane {
namespace {

std::string array_text(const char* name, const LANE_NAMESPACE::ArrayRange& r) {
  return fmt::format("    {{{}, {}, {}}},  // {}: offset, elements, bytes\n", r.offset, r.count, r.bytes, name);
}

}  // namespace

std::string to_cpp(const VocabularySource& s, std::string_view name) {
  const bool bpe = s.model == LANE_NAMESPACE::TokenizerModel::Bpe;
  std::string out = fmt::format("constexpr VocabularySource {} = {{\n", name);
  out += fmt::format("    TokenizerModel::{},\n", bpe ? "Bpe" : "Spm");
  out += fmt::format("    {},  // pre-tokenizer{}\n", s.pretokenizer,
                     bpe ? fmt::format(" {}", LANE_NAMESPACE::kPretokenizers[s.pretokenizer].name) : ": none");
  out += array_text("tokens", s.tokens) + array_text("scores", s.scores);
  out += array_text("types", s.types) + array_text("merges", s.merges);
  out += fmt::format("    {}, {}, {}, {}, {}, {},  // bos, eos, eot, eom, unknown, padding\n", s.bos, s.eos, s.eot,
                     s.eom, s.unknown, s.padding);
  out += fmt::format("    {}, {}, {},  // fim: padding, repository, separator\n", s.fim_padding, s.fim_repository,
                     s.fim_separator);
  out += fmt::format("    {}, {},  // add bos, eos\n", s.add_bos, s.add_eos);
  out += fmt::format("    {},  // add space prefix\n    {},  // strip after special\n}};\n", s.add_space_prefix,
                     s.strip_after_special);
  return out;
}

std::string tokenize_json(const Vocabulary& vocabulary, std::string_view text, bool bos, bool specials) {
  std::vector<int32_t> ids;
  const auto status = LANE_NAMESPACE::Tokenizer(vocabulary).encode(text, {bos, specials}, &ids);
  if (!status.ok()) throw UsageError(status.message);
  return fmt::format("[{}]", fmt::join(ids, ", "));
}

}  // namespace lane
