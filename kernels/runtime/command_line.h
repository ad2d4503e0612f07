// The command line of an emitted program, of `lanec run` and of `lanec tokenize`: one table of options.
#pragma once
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespace.h"
#include "runtime/sampler.h"
#include "runtime/status.h"

namespace LANE_NAMESPACE {

enum class PromptKind { None, Text, File, Ids, Lines /* of a file, a request each */ };

/// What a person asks of a run. Strings are as given; empty where they were not.
struct RunOptions {
  std::string model;    // the checkpoint; empty: the one compiled from
  std::string sidecar;  // empty: beside the program
  PromptKind prompt_kind = PromptKind::None;
  std::string prompt;               // text, or the path of a file ("-": standard input)
  std::vector<int32_t> prompt_ids;  // --tokens
  int64_t count = -1;               // -n; -1: not given
  int64_t ctx = 0;                  // 0: not given
  SamplerOptions sampler;
  bool temperature_given = false;
  std::vector<int32_t> forced;
  std::string dump_logits;
  bool json = false;
  bool bos = true, specials = true, escapes = true;
  bool allow_weights_change = false;
  std::optional<bool> cuda_graphs;  // absent: as compiled
  int64_t mem_bytes = 0;            // 0: what the device says
  std::string kv, pre;              // lanec alone
  bool f64 = false;                 // lanec alone
  bool help = false;

  /// How many tokens to generate at most: what -n says, else as many as are forced, else 128.
  int64_t wanted() const { return count >= 0 ? count : !forced.empty() ? static_cast<int64_t>(forced.size()) : 128; }
};

/// Which program's command line; one bit each.
enum CommandLine : unsigned { kProgram = 1, kLanecRun = 2, kLanecTokenize = 4 };

namespace command_line_detail {

inline Status expected(const std::string& option, const std::string& found, const std::string& accepted) {
  return usage_error(option + " '" + found + "': expected " + accepted);
}

inline Status parse_integer(const std::string& option, const std::string& s, int64_t low, int64_t high, int64_t* out) {
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(s.c_str(), &end, 10);
  const bool plain = !s.empty() && (s[0] == '-' || (s[0] >= '0' && s[0] <= '9'));
  if (!plain || *end != '\0' || errno != 0 || value < low || value > high) {
    const std::string from = low == INT64_MIN ? "" : " from " + std::to_string(low);
    return expected(option, s, "an integer" + from + (high == INT64_MAX ? "" : " to " + std::to_string(high)));
  }
  *out = value;
  return {};
}

/// A number of bytes, or of K, M, G or T of them: powers of 1024.
inline Status parse_bytes(const std::string& option, const std::string& s, int64_t* out) {
  constexpr char kUnits[] = "KMGT";
  const char* unit = s.empty() ? nullptr : std::strchr(kUnits, s.back());
  const int shift = unit ? 10 * static_cast<int>(unit - kUnits + 1) : 0;
  const Status status = parse_integer(option, unit ? s.substr(0, s.size() - 1) : s, 1, INT64_MAX >> shift, out);
  if (!status.ok()) return expected(option, s, "a number of bytes from 1, or of K, M, G or T");
  *out <<= shift;
  return {};
}

inline Status parse_real(const std::string& option, const std::string& s, double low, double high, const char* accepted,
                         double* out) {
  char* end = nullptr;
  const double value = std::strtod(s.c_str(), &end);
  const bool plain = !s.empty() && ((s[0] >= '0' && s[0] <= '9') || s[0] == '.');
  if (!plain || *end != '\0' || !(value >= low && value <= high)) return expected(option, s, accepted);
  *out = value;
  return {};
}

inline Status parse_seed(const std::string& option, const std::string& s, uint64_t* out) {
  errno = 0;
  char* end = nullptr;
  *out = std::strtoull(s.c_str(), &end, 10);
  const bool plain = !s.empty() && s[0] >= '0' && s[0] <= '9';
  return plain && *end == '\0' && errno == 0 ? Status{}
                                             : expected(option, s, "an integer from 0 to 18446744073709551615");
}

inline Status parse_ids(const std::string& option, const std::string& s, std::vector<int32_t>* out) {
  out->clear();
  for (size_t at = 0; at <= s.size();) {
    const size_t comma = std::min(s.find(',', at), s.size());
    int64_t id;
    if (!parse_integer(option, s.substr(at, comma - at), 0, INT32_MAX, &id).ok()) {
      return expected(option, s, "token ids with commas between, as in 1,2,3");
    }
    out->push_back(static_cast<int32_t>(id));
    at = comma + 1;
  }
  return {};
}

inline Status set_prompt(RunOptions* o, const std::string& option, PromptKind kind, const std::string& value) {
  if (o->prompt_kind != PromptKind::None)
    return usage_error("only one of -p, -f, --tokens and --prompts gives the prompt");
  o->prompt_kind = kind;
  if (kind == PromptKind::Ids) return parse_ids(option, value, &o->prompt_ids);
  o->prompt = value;
  return {};
}

/// One option: its spelling, what its value is called (null: it has none), who has it, what it says, what it does with
/// the value of what a message calls `name`: the option, or a key that stands for it.
struct Option {
  const char* name;
  const char* value;
  unsigned tools;
  const char* help;
  Status (*set)(RunOptions* o, const std::string& name, const std::string& value);
};

using O = RunOptions;
using S = const std::string&;
constexpr unsigned kRuns = kProgram | kLanecRun;
constexpr unsigned kAll = kProgram | kLanecRun | kLanecTokenize;

constexpr Option kOptions[] = {
    {"-m", "FILE", kProgram, "the checkpoint (default: the one compiled from)",
     [](O* o, S, S v) { return o->model = v, Status{}; }},
    {"--sidecar", "FILE", kProgram, "the sidecar (default: beside the program)",
     [](O* o, S, S v) { return o->sidecar = v, Status{}; }},
    {"-p", "TEXT", kAll, "the prompt; \\n \\t \\\\ and \\xNN are escapes",
     [](O* o, S n, S v) { return set_prompt(o, n, PromptKind::Text, v); }},
    {"-f", "FILE", kAll, "the prompt is this file's exact bytes; - is standard input",
     [](O* o, S n, S v) { return set_prompt(o, n, PromptKind::File, v); }},
    {"--tokens", "IDS", kRuns, "the prompt is exactly these ids: 1,2,3",
     [](O* o, S n, S v) { return set_prompt(o, n, PromptKind::Ids, v); }},
    {"--prompts", "FILE", kRuns,
     "a prompt a line, as JSON: {\"prompt\": TEXT or \"tokens\": [IDS], \"n\": N, \"temp\": T, ...}",
     [](O* o, S n, S v) { return set_prompt(o, n, PromptKind::Lines, v); }},
    {"--no-escape", nullptr, kAll, "backslashes in -p are backslashes",
     [](O* o, S, S) { return o->escapes = false, Status{}; }},
    {"--no-special", nullptr, kAll, "special tokens spelled out in the prompt are text",
     [](O* o, S, S) { return o->specials = false, Status{}; }},
    {"--no-bos", nullptr, kAll, "add no begin and end tokens to the prompt",
     [](O* o, S, S) { return o->bos = false, Status{}; }},
    {"-n", "N", kRuns, "tokens to generate at most (default 128); 0: the prompt alone",
     [](O* o, S n, S v) { return parse_integer(n, v, 0, INT32_MAX, &o->count); }},
    {"--ctx", "N", kRuns, "positions at most, the prompt's included",
     [](O* o, S n, S v) { return parse_integer(n, v, 1, INT32_MAX, &o->ctx); }},
    {"--temp", "T", kRuns, "temperature (default 0: the most likely token; 1 with a filter below)",
     [](O* o, S n, S v) {
       return o->temperature_given = true, parse_real(n, v, 0, 1e6, "a number from 0", &o->sampler.temperature);
     }},
    {"--top-k", "K", kRuns, "sample among the K most likely tokens; 0: all",
     [](O* o, S n, S v) { return parse_integer(n, v, 0, INT32_MAX, &o->sampler.top_k); }},
    {"--top-p", "P", kRuns, "then among the fewest whose probabilities reach P",
     [](O* o, S n, S v) { return parse_real(n, v, 0, 1, "a number from 0 to 1", &o->sampler.top_p); }},
    {"--min-p", "P", kRuns, "then among those at least P times as likely as the first",
     [](O* o, S n, S v) { return parse_real(n, v, 0, 1, "a number from 0 to 1", &o->sampler.min_p); }},
    {"--seed", "N", kRuns, "the same seed gives the same tokens (default 0)",
     [](O* o, S n, S v) { return parse_seed(n, v, &o->sampler.seed); }},
    {"--force", "IDS", kRuns, "follow these ids instead of the model's choices, past any end token",
     [](O* o, S n, S v) { return parse_ids(n, v, &o->forced); }},
    {"--json", nullptr, kRuns, "print one line of JSON instead of the text",
     [](O* o, S, S) { return o->json = true, Status{}; }},
    {"--dump-logits", "FILE", kRuns, "write a row of little-endian float32 logits for each position fed",
     [](O* o, S, S v) { return o->dump_logits = v, Status{}; }},
    {"--allow-weights-change", nullptr, kProgram, "accept other weights under the same header",
     [](O* o, S, S) { return o->allow_weights_change = true, Status{}; }},
    {"--no-cuda-graphs", nullptr, kProgram, "launch every kernel by itself",
     [](O* o, S, S) { return o->cuda_graphs = false, Status{}; }},
    {"--cuda-graphs", nullptr, kProgram, "capture each step and replay it (default: as compiled)",
     [](O* o, S, S) { return o->cuda_graphs = true, Status{}; }},
    {"--mem-bytes", "N", kProgram, "stands for the device's free memory: bytes, or as in 512M, 80G",
     [](O* o, S n, S v) { return parse_bytes(n, v, &o->mem_bytes); }},
    {"--kv", "TYPE", kLanecRun, "type of the key and value cache: f16 (default), f32, q8_0",
     [](O* o, S n, S v) {
       const bool known = v == "f16" || v == "f32" || v == "q8_0";
       return o->kv = v, known ? Status{} : expected(n, v, "f16, f32 or q8_0");
     }},
    {"--pre", "NAME", kLanecRun | kLanecTokenize, "pre-tokenizer, instead of the checkpoint's own",
     [](O* o, S, S v) { return o->pre = v, Status{}; }},
    {"--f64", nullptr, kLanecRun, "compute in float64", [](O* o, S, S) { return o->f64 = true, Status{}; }},
    {"-h", nullptr, kAll, "print this text", [](O* o, S, S) { return o->help = true, Status{}; }},
    {"--help", nullptr, kAll, "print this text", [](O* o, S, S) { return o->help = true, Status{}; }},
};

inline const Option* find_option(const std::string& name, CommandLine tool) {
  for (const Option& option : kOptions) {
    if (option.name == name && (option.tools & tool) != 0) return &option;
  }
  return nullptr;
}

/// Asking for a filter is asking to sample.
inline void choose_temperature(RunOptions* o) {
  const SamplerOptions& s = o->sampler;
  const bool filters = s.top_k > 0 || s.top_p < 1 || s.min_p > 0;
  if (filters && !o->temperature_given) o->sampler.temperature = 1;
}

inline Status check_whole(CommandLine tool, RunOptions* o) {
  if (o->help) return {};
  if (tool != kProgram && o->model.empty()) return usage_error("no MODEL given");
  if (o->prompt_kind == PromptKind::None) {
    return usage_error(tool == kLanecTokenize ? "no text given: expected -p or -f"
                                              : "no prompt given: expected -p, -f, --tokens or --prompts");
  }
  choose_temperature(o);
  return {};
}

}  // namespace command_line_detail

/// Parses what follows the program's name (for lanec: what follows `run` or `tokenize`). Values follow their option or
/// an equals sign. Refuses (exit 2) unknown options, missing, malformed and out-of-range values, a prompt given twice
/// or not at all, and stray arguments: lanec's tools alone take one, the model.
inline Status parse_command_line(const std::vector<std::string>& args, CommandLine tool, RunOptions* out) {
  using namespace command_line_detail;
  *out = RunOptions();
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg.size() < 2 || arg[0] != '-') {
      if (tool == kProgram || !out->model.empty())
        return usage_error("stray argument '" + arg + "' (-h lists the options)");
      out->model = arg;
      continue;
    }
    const size_t equals = arg.compare(0, 2, "--") == 0 ? arg.find('=') : std::string::npos;
    const std::string name = arg.substr(0, equals);
    const Option* option = find_option(name, tool);
    if (option == nullptr) return usage_error("unknown option '" + name + "' (-h lists the options)");
    if (option->value == nullptr && equals != std::string::npos) return usage_error(name + " takes no value");
    const bool apart = option->value != nullptr && equals == std::string::npos;
    if (apart && i + 1 == args.size()) return usage_error(name + " needs a value: " + option->value);
    const std::string value = apart ? args[++i] : equals != std::string::npos ? arg.substr(equals + 1) : "";
    if (Status status = option->set(out, name, value); !status.ok()) return status;
  }
  return check_whole(tool, out);
}

/// What -h prints. `program` is how it was called.
inline std::string usage_text(const std::string& program, CommandLine tool) {
  std::string out = "Usage: " + program + (tool == kProgram ? "" : " MODEL") +
                    (tool == kLanecTokenize ? " (-p TEXT | -f FILE) [options]\n"
                                            : " (-p TEXT | -f FILE | --tokens IDS | --prompts FILE) [options]\n");
  for (const command_line_detail::Option& option : command_line_detail::kOptions) {
    if ((option.tools & tool) == 0) continue;
    std::string left =
        std::string("  ") + option.name + (option.value == nullptr ? "" : std::string(" ") + option.value);
    left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
    out += left + option.help + "\n";
  }
  return out;
}

}  // namespace LANE_NAMESPACE
