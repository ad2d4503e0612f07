// Pre-tokenizers: how a text is cut into words before byte-level BPE merges within each. A checkpoint names one in
// `tokenizer.ggml.pre`; each is a list of regular expressions, applied one after the other to the pieces that the one
// before left. runtime/scanners.h has the expressions.
#pragma once
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/namespace.h"
#include "runtime/scanners.h"

namespace LANE_NAMESPACE {

/// One row a name of `tokenizer.ggml.pre`. `stages` ends at the first null.
struct PretokenizerRow {
  const char* name;
  bool ignore_merges;  // a word that is a token as a whole is that token, whatever the merges say
  bool add_bos;        // where the checkpoint has no tokenizer.ggml.add_bos_token
  Matcher stages[7];
};

inline constexpr PretokenizerRow kPretokenizers[] = {
    {"default", false, false, {scan::falcon_punctuation<false>, scan::gpt2, scan::run<kNumber>, scan::three_digits}},
    {"falcon", false, false, {scan::falcon_punctuation<true>, scan::gpt2, scan::three_digits}},
    {"gpt-2", false, false, {scan::gpt2}},
    {"phi-2", false, false, {scan::gpt2}},
    {"exaone4", false, false, {scan::gpt2}},
    {"gigachat", false, false, {scan::gpt2}},
    {"mellum", false, false, {scan::gpt2}},
    {"mpt", false, false, {scan::gpt2}},
    {"olmo", false, false, {scan::gpt2}},
    {"jais", false, false, {scan::gpt2}},
    {"trillion", false, false, {scan::gpt2}},
    {"granite-docling", false, false, {scan::gpt2}},
    {"modern-bert", false, false, {scan::gpt2}},
    {"a.x-4.0", false, false, {scan::gpt2}},
    {"starcoder", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"refact", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"command-r", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"smollm", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"codeshell", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"exaone", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"minerva-7b", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"mellum2", false, false, {scan::one<kNumber>, scan::gpt2}},
    {"llama3", true, true, {scan::llama3<3>}},
    {"llama-v3", true, true, {scan::llama3<3>}},
    {"llama-bpe", true, true, {scan::llama3<3>}},
    {"falcon3", true, true, {scan::llama3<3>}},
    {"falcon-h1", true, true, {scan::llama3<3>}},
    {"pixtral", true, true, {scan::llama3<3>}},
    {"midm-2.0", true, true, {scan::llama3<3>}},
    {"lfm2", true, true, {scan::llama3<3>}},
    {"glm4", true, false, {scan::llama3<3>}},
    {"glm5", true, false, {scan::llama3<3>}},
    {"chatglm-bpe", false, false, {scan::llama3<3>}},
    {"dbrx", false, false, {scan::llama3<3>}},
    {"smaug-bpe", false, false, {scan::llama3<3>}},
    {"qwen2", false, false, {scan::llama3<1>}},
    {"deepseek-r1-qwen", false, false, {scan::llama3<1>}},
    {"stablelm2", false, false, {scan::llama3<1>}},
    {"megrez", false, false, {scan::llama3<1>}},
    {"hunyuan", false, false, {scan::llama3<1>}},
    {"grok-2", false, false, {scan::llama3<1>}},
    {"solar-open", false, false, {scan::llama3<1>}},
    {"kormo", false, false, {scan::llama3<1>}},
    {"bailingmoe", false, false, {scan::llama3<1>}},
    {"bailingmoe2", false, false, {scan::llama3<1>}},
    {"llada-moe", false, false, {scan::llama3<1>}},
    {"laguna", false, false, {scan::line_or_breaks, scan::llama3<1>}},
    {"qwen35", false, false, {scan::qwen35}},
    {"seed-coder", false, false, {scan::seed_coder}},
    {"deepseek-llm",
     false,
     false,
     {scan::newline, scan::after_space<scan::run_of_ranges<scan::kDeepseekLetters>>,
      scan::after_space<scan::run_of_ranges<scan::kDeepseekPunctuation>>, scan::spaces_at_end,
      scan::run_of_ranges<scan::kDeepseekIdeographs>, scan::run<kNumber>}},
    {"deepseek-coder",
     false,
     false,
     {scan::newline, scan::after_space<scan::run<kLetter>>, scan::after_space<scan::run<kPunctuation>>,
      scan::run_of_ranges<scan::kDeepseekIdeographs>, scan::one<kNumber>}},
    {"deepseek-v3", false, false, {scan::numbers<3>, scan::run_of_ranges<scan::kIdeographsAndKana>, scan::deepseek_v3}},
    {"hunyuan-dense",
     false,
     false,
     {scan::numbers<3>, scan::run_of_ranges<scan::kIdeographsAndKana>, scan::deepseek_v3}},
    {"joyai-llm", false, false, {scan::numbers<3>, scan::run_of_ranges<scan::kIdeographsAndKana>, scan::deepseek_v3}},
    {"hy_v4", false, false, {scan::numbers<3>, scan::run_of_ranges<scan::kIdeographsAndKana>, scan::deepseek_v3}},
    {"kimi-k2", false, false, {scan::kimi_k2}},
    {"gpt-4o", false, false, {scan::gpt4o}},
    {"llama4", false, false, {scan::gpt4o}},
    {"kanana2", false, false, {scan::gpt4o}},
    {"minimax-m2", false, false, {scan::gpt4o}},
    {"tekken", true, true, {scan::tekken}},
};

/// The row named `name`; −1 where there is none.
inline int find_pretokenizer(std::string_view name) {
  for (size_t i = 0; i < std::size(kPretokenizers); ++i) {
    if (kPretokenizers[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

/// Cuts each of the pieces that `ends` closes (in code points) at the matches of one stage; what lies between matches
/// stays together.
inline std::vector<size_t> split_stage(const CodePoints& t, Matcher match, const std::vector<size_t>& ends) {
  std::vector<size_t> out;
  size_t at = 0;
  for (size_t end : ends) {
    size_t gap = at;
    while (at < end) {
      const size_t to = match(t, at, end);
      if (to == at) {
        ++at;
        continue;
      }
      if (gap < at) out.push_back(at);
      out.push_back(to);
      gap = at = to;
    }
    if (gap < end) out.push_back(end);
  }
  return out;
}

/// Where the words of `t` end, in bytes; ascending, the last is the text's length. Empty for an empty text.
inline std::vector<size_t> pretokenize(const PretokenizerRow& row, const CodePoints& t) {
  std::vector<size_t> ends;
  if (!t.point.empty()) ends.push_back(t.point.size());
  for (Matcher stage : row.stages) {
    if (stage == nullptr) break;
    ends = split_stage(t, stage, ends);
  }
  for (size_t& end : ends) end = t.offset[end];
  return ends;
}

}  // namespace LANE_NAMESPACE
