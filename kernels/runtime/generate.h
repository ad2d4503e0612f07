// From a prompt to text: the generation loop, over any engine that computes a model's steps. An emitted program's
// engine replays CUDA graphs; `lanec run`'s is the interpreter.
//
// An engine has a sequence of positions, empty at first, and
//   int64_t context() const                the positions it has room for
//   int32_t vocabulary_rows() const        logits a position; at least the vocabulary's tokens
//   Status prefill(const int32_t* ids, size_t count, LogitsSink* sink)
//                                          appends `count` ≥ 1 tokens; `sink`, where not null, takes each one's logits
//                                          in order
//   Status decode(int32_t token)           appends one token
//   Status logits(const float** row)       of the last position; valid until the next call
//   Status greedy_next(int32_t* token)     the highest logit of the last position among the vocabulary's tokens
//   void run_ahead(int64_t steps)          a promise: each of the next `steps` calls of decode() passes what
//   greedy_next() gave,
//                                          though there may be fewer; so steps may be launched before they are asked
//                                          for
#pragma once
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespace.h"
#include "runtime/command_line.h"
#include "runtime/detokenizer.h"
#include "runtime/escapes.h"
#include "runtime/sampler.h"
#include "runtime/status.h"
#include "runtime/tokenizer.h"
#include "runtime/vocabulary.h"

namespace LANE_NAMESPACE {

/// Takes the logits of one position after the other: `row` has the engine's vocabulary_rows() floats.
class LogitsSink {
 public:
  virtual ~LogitsSink() = default;
  virtual Status row(const float* row) = 0;
};

/// What a run gave.
struct Generation {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> ids;        // an end token included
  std::string text;                // the bytes of `ids`
  const char* finish_reason = "";  // "stop": an end token; "length": -n or the context
  double load_seconds = 0;         // the caller's to fill
  double prompt_seconds = 0;       // to the last prompt position's logits
  double generation_seconds = 0;   // from there to the last token
};

namespace generate_detail {

inline Status system_error(const std::string& what, const std::string& path) {
  return io_error(path + ": " + what + ": " + std::strerror(errno));
}

/// Everything in the file, or on standard input. Stops at what no prompt can be, so that an endless file ends too.
inline Status read_text(const std::string& path, std::string* out) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return system_error("cannot open", path);
  char block[65536];
  for (size_t got = 1; got > 0 && out->size() < kLongestText;) {
    got = std::fread(block, 1, sizeof block, file);
    out->append(block, got);
  }
  const Status status = std::ferror(file) ? system_error("cannot read", path) : Status{};
  if (file != stdin) std::fclose(file);
  return status;
}

/// Text for a person or a pipe. A reader that has gone is no error: there is no one left to write for.
class TextOutput {
 public:
  explicit TextOutput(std::FILE* file) : file_(file) {}
  Status write(std::string_view text) {
    if (file_ == nullptr || reader_gone_ || text.empty()) return {};
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0) return {};
    reader_gone_ = errno == EPIPE;
    return reader_gone_ ? Status{} : system_error("cannot write", "standard output");
  }
  bool reader_gone() const { return reader_gone_; }

 private:
  std::FILE* file_;
  bool reader_gone_ = false;
};

/// The file of --dump-logits: written under another name and renamed when it is whole; a pipe or a device is written as
/// it is. On little-endian machines alone, as all of GGUF here.
class LogitsFile : public LogitsSink {
 public:
  LogitsFile(std::string path, int32_t tokens) : path_(std::move(path)), tokens_(static_cast<size_t>(tokens)) {
    struct stat info;
    const bool special = ::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    part_ = special ? path_ : path_ + ".part";
  }
  ~LogitsFile() override {
    if (file_ == nullptr) return;
    std::fclose(file_);
    discard();
  }
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  bool wanted() const { return !path_.empty(); }
  Status open() {
    if (wanted() && (file_ = std::fopen(part_.c_str(), "wb")) == nullptr) return system_error("cannot write", part_);
    return {};
  }
  /// Rows of a matrix beyond the vocabulary's tokens are padding, and left out.
  Status row(const float* row) override {
    return std::fwrite(row, sizeof(float), tokens_, file_) == tokens_ ? Status{} : system_error("cannot write", part_);
  }
  Status finish() {
    if (file_ == nullptr) return {};
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    if (closed && (part_ == path_ || std::rename(part_.c_str(), path_.c_str()) == 0)) return {};
    const Status status = system_error("cannot write", path_);
    discard();
    return status;
  }

 private:
  void discard() {
    if (part_ != path_) std::remove(part_.c_str());
  }

  std::string path_, part_;
  size_t tokens_;
  std::FILE* file_ = nullptr;
};

inline Status check_ids(const char* option, const std::vector<int32_t>& ids, int32_t tokens) {
  for (int32_t id : ids) {
    if (id < 0 || id >= tokens) {
      return usage_error(std::string(option) + ": " + std::to_string(id) + " is no token; the vocabulary has " +
                         std::to_string(tokens) + ", from 0");
    }
  }
  return {};
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline std::string json_ids(const std::vector<int32_t>& ids) {
  std::string out = "[";
  for (size_t i = 0; i < ids.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(ids[i]);
  return out + "]";
}

/// `count` things in `seconds`, as a rate; 0 where no time passed.
inline double rate(size_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

/// The first token comes with the prompt's time; these are the others.
inline size_t generated_later(const Generation& g) { return g.ids.empty() ? 0 : g.ids.size() - 1; }

inline std::string fixed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

/// One run's loop, a step of it a function.
template <class Engine>
class Loop {
 public:
  Loop(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options, TextOutput& output, LogitsFile& logits,
       Generation& result)
      : engine_(engine),
        v_(vocabulary),
        o_(options),
        output_(output),
        logits_(logits),
        result_(result),
        stream_(vocabulary) {}

  Status run() {
    auto start = std::chrono::steady_clock::now();
    Status status =
        engine_.prefill(result_.prompt_ids.data(), result_.prompt_ids.size(), logits_.wanted() ? &logits_ : nullptr);
    // Fetching the first choice waits for the device, so that the prompt's time is whole.
    int32_t token = -1;
    const int64_t count = steps();
    if (status.ok() && greedy()) engine_.run_ahead(count - 1);
    if (status.ok() && count > 0) status = choose(0, &token);
    result_.prompt_seconds = seconds_since(start);
    start = std::chrono::steady_clock::now();
    result_.finish_reason = "length";
    for (int64_t i = 0; status.ok() && i < count; ++i) {
      status = take(token, i);
      if (!status.ok() || ended(token, i) || output_.reader_gone() || i + 1 == count) break;
      status = advance(token);
      if (status.ok()) status = choose(i + 1, &token);
    }
    result_.generation_seconds = seconds_since(start);
    return status.ok() ? write(stream_.finish()) : status;
  }

 private:
  /// Tokens to generate at most. The last one is not fed, so it needs no position.
  int64_t steps() const {
    const int64_t room = engine_.context() - static_cast<int64_t>(result_.prompt_ids.size()) + 1;
    return std::min(o_.wanted(), room);
  }
  bool forced(int64_t i) const { return i < static_cast<int64_t>(o_.forced.size()); }
  bool greedy() const { return o_.sampler.temperature == 0 && o_.forced.empty() && !logits_.wanted(); }

  Status choose(int64_t i, int32_t* token) {
    if (forced(i)) return *token = o_.forced[static_cast<size_t>(i)], Status{};
    if (o_.sampler.temperature == 0) return engine_.greedy_next(token);
    const float* row = nullptr;
    const Status status = engine_.logits(&row);
    return status.ok() ? sample(row, v_.tokens(), o_.sampler, static_cast<uint64_t>(i), token) : status;
  }

  Status take(int32_t token, int64_t i) {
    if (!v_.is_token(token)) return internal_error("the engine chose " + std::to_string(token) + ", which is no token");
    result_.ids.push_back(token);
    // An end token's text is no part of the answer, whatever type the file gives it.
    return ends(token, i) ? Status{} : write(stream_.push(token));
  }

  bool ends(int32_t token, int64_t i) const { return !forced(i) && v_.ends_generation(token); }
  bool ended(int32_t token, int64_t i) {
    if (!ends(token, i)) return false;
    result_.finish_reason = "stop";
    return true;
  }

  Status advance(int32_t token) {
    Status status = engine_.decode(token);
    const float* row = nullptr;
    if (status.ok() && logits_.wanted()) status = engine_.logits(&row);
    return status.ok() && row != nullptr ? logits_.row(row) : status;
  }

  Status write(std::string_view text) {
    result_.text += text;
    return output_.write(text);
  }

  Engine& engine_;
  const Vocabulary& v_;
  const RunOptions& o_;
  TextOutput& output_;
  LogitsFile& logits_;
  Generation& result_;
  TextStream stream_;
};

}  // namespace generate_detail

/// The prompt's text, exactly: -p with its escapes replaced, or the bytes of -f.
inline Status prompt_text(const RunOptions& options, std::string* text) {
  if (options.prompt_kind == PromptKind::File) return generate_detail::read_text(options.prompt, text);
  *text = options.escapes ? replace_escapes(options.prompt) : options.prompt;
  return {};
}

/// The positions a run may use: the engine's, or fewer with --ctx.
inline Status choose_context(const RunOptions& options, int64_t compiled, int64_t* context) {
  *context = options.ctx == 0 ? compiled : options.ctx;
  if (*context <= compiled) return {};
  return usage_error("--ctx " + std::to_string(options.ctx) + ": expected at most " + std::to_string(compiled) +
                     ", the context compiled for");
}

/// The prompt's ids, checked against `context` and the vocabulary, before anything is loaded. An empty prompt is the
/// begin token alone, and refused (exit 2) where the vocabulary adds none.
inline Status prompt_ids(const Vocabulary& vocabulary, const RunOptions& options, int64_t context,
                         std::vector<int32_t>* ids) {
  *ids = options.prompt_ids;
  if (options.prompt_kind != PromptKind::Ids) {
    std::string text;
    Status status = prompt_text(options, &text);
    if (status.ok()) status = Tokenizer(vocabulary).encode(text, {options.bos, options.specials}, ids);
    if (!status.ok()) return status;
  }
  if (ids->empty()) return usage_error("the prompt is empty and no begin token is added: there is nothing to continue");
  if (static_cast<int64_t>(ids->size()) > context) {
    return usage_error("the prompt has " + std::to_string(ids->size()) + " tokens; the context has room for " +
                       std::to_string(context));
  }
  const Status status = generate_detail::check_ids("--tokens", *ids, vocabulary.tokens());
  return status.ok() ? generate_detail::check_ids("--force", options.forced, vocabulary.tokens()) : status;
}

/// Continues `prompt` and writes the text to `out` (null: nowhere) as it comes. With P prompt ids and M generated ones,
/// --dump-logits gets P + M − 1 rows, or P where M is 0.
template <class Engine>
Status generate(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options,
                const std::vector<int32_t>& prompt, std::FILE* out, Generation* result) {
  *result = Generation();
  result->prompt_ids = prompt;
  if (engine.vocabulary_rows() < vocabulary.tokens()) return internal_error("fewer logits than tokens");
  if (static_cast<int64_t>(prompt.size()) > engine.context()) return internal_error("a prompt past the context");
  generate_detail::TextOutput output(out);
  generate_detail::LogitsFile logits(options.dump_logits, vocabulary.tokens());
  Status status = logits.open();
  if (status.ok()) status = generate_detail::Loop<Engine>(engine, vocabulary, options, output, logits, *result).run();
  return status.ok() ? logits.finish() : status;
}

/// The line of --json, without its newline.
inline std::string to_json(const Generation& g) {
  using namespace generate_detail;
  return "{\"prompt_ids\": " + json_ids(g.prompt_ids) + ", \"ids\": " + json_ids(g.ids) +
         ", \"text\": " + json_string(g.text) + ", \"finish_reason\": \"" + g.finish_reason +
         "\", \"timings\": {\"load_seconds\": " + fixed(g.load_seconds) +
         ", \"prompt_seconds\": " + fixed(g.prompt_seconds) +
         ", \"generation_seconds\": " + fixed(g.generation_seconds) +
         ", \"prompt_tokens_per_second\": " + fixed(rate(g.prompt_ids.size(), g.prompt_seconds)) +
         ", \"generation_tokens_per_second\": " + fixed(rate(generated_later(g), g.generation_seconds)) + "}}";
}

/// One line for a person.
inline std::string summary(const Generation& g) {
  using namespace generate_detail;
  return "load " + fixed(g.load_seconds) + " s; prompt " + std::to_string(g.prompt_ids.size()) + " tokens in " +
         fixed(g.prompt_seconds) + " s; generated " + std::to_string(g.ids.size()) + " tokens, " +
         fixed(rate(generated_later(g), g.generation_seconds)) + " tokens/s; finished: " + g.finish_reason;
}

/// A whole run after its options are parsed: text or JSON on standard output, everything else on standard error.
/// Returns the process's exit code. The caller has opened the engine for `prompt` (see prompt_ids) and measured that.
template <class Engine>
int run_and_print(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options,
                  const std::vector<int32_t>& prompt, double load_seconds) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends the output, not the process
  Generation result;
  Status status = generate(engine, vocabulary, options, prompt, options.json ? nullptr : stdout, &result);
  result.load_seconds = load_seconds;
  if (status.ok() && options.json) status = generate_detail::TextOutput(stdout).write(to_json(result) + "\n");
  std::fprintf(stderr, "%s%s\n", result.text.empty() || options.json ? "" : "\n",
               status.ok() ? summary(result).c_str() : status.message.c_str());
  return status.code;
}

}  // namespace LANE_NAMESPACE
