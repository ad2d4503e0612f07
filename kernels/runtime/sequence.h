// One prompt and its continuation: what is chosen after each position, when it ends, and what is reported of it. The
// engine that computes the positions is said by generate.h.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/namespace.h"
#include "runtime/command_line.h"
#include "runtime/detokenizer.h"
#include "runtime/escapes.h"
#include "runtime/output.h"
#include "runtime/sampler.h"
#include "runtime/status.h"
#include "runtime/vocabulary.h"

namespace LANE_NAMESPACE {

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

/// A prompt's continuation, a token at a time.
class Sequence {
 public:
  /// Text goes to `out` as it comes; null: nowhere. The vocabulary outlives this.
  Sequence(const Vocabulary& vocabulary, const RunOptions& options, const std::vector<int32_t>& prompt, std::FILE* out)
      : v_(vocabulary),
        o_(options),
        output_(out),
        logits_(options.dump_logits, vocabulary.tokens()),
        stream_(vocabulary) {
    result_.prompt_ids = prompt;
    result_.finish_reason = "length";
  }

  /// Feeds the prompt to an empty sequence of `engine`.
  template <class Engine>
  Status prefill(Engine& engine) {
    start_ = std::chrono::steady_clock::now();
    // The last token generated is not fed, so it needs no position.
    const int64_t room = engine.context() - static_cast<int64_t>(result_.prompt_ids.size()) + 1;
    steps_ = std::min(o_.wanted(), room);
    if (engine.vocabulary_rows() < v_.tokens()) return internal_error("fewer logits than tokens");
    if (room < 1) return internal_error("a prompt past the context");
    if (Status s = logits_.open(); !s.ok()) return s;
    LogitsSink* sink = logits_.wanted() ? &logits_ : nullptr;
    return engine.prefill(result_.prompt_ids.data(), result_.prompt_ids.size(), sink);
  }

  /// Whether next() is to be called no more. Logits are dumped whole, even where no one reads the text any more.
  bool done() const { return ended_ || (output_.reader_gone() && !logits_.wanted()) || taken() >= steps_; }

  /// Chooses the token after the position fed last, which is row `row` of the engine's latest step.
  template <class Engine>
  Status next(Engine& engine, int row) {
    if (Status s = dump(engine, row); !s.ok()) return s;
    if (Status s = choose(engine, row); !s.ok()) return s;
    if (taken() == 0) {
      if (Status s = engine.wait(); !s.ok()) return s;  // a forced choice has not waited for the prompt
      result_.prompt_seconds = seconds_since(start_);
      start_ = std::chrono::steady_clock::now();
    }
    return take();
  }
  int32_t token() const { return token_; }
  /// Where token() stands when it is fed.
  int64_t position() const { return static_cast<int64_t>(result_.prompt_ids.size()) + taken() - 1; }

  template <class Engine>
  Status finish(Engine& engine) {
    if (Status s = engine.wait(); !s.ok()) return s;  // nor has what was forced, or a prompt that is not continued
    (taken() == 0 ? result_.prompt_seconds : result_.generation_seconds) = seconds_since(start_);
    const Status status = write(stream_.finish());
    return status.ok() ? logits_.finish() : status;
  }
  Generation& result() { return result_; }

  /// Tokens from the next one on whose choice will be fed as the device made it, without a look at what was chosen.
  int64_t fed_blindly() const {
    const bool greedy = o_.sampler.temperature == 0 && o_.forced.empty() && !logits_.wanted();
    return greedy ? steps_ - taken() - 1 : 0;
  }

 private:
  int64_t taken() const { return static_cast<int64_t>(result_.ids.size()); }
  bool forced() const { return taken() < static_cast<int64_t>(o_.forced.size()); }

  /// The prompt's rows are written by prefill().
  template <class Engine>
  Status dump(Engine& engine, int row) {
    if (taken() == 0 || !logits_.wanted()) return {};
    const float* values = nullptr;
    const Status status = engine.logits(&values, row);
    return status.ok() ? logits_.row(values) : status;
  }

  template <class Engine>
  Status choose(Engine& engine, int row) {
    if (forced()) return token_ = o_.forced[result_.ids.size()], Status{};
    if (o_.sampler.temperature == 0) return engine.greedy_next(&token_, row);
    const float* values = nullptr;
    const Status status = engine.logits(&values, row);
    return status.ok() ? sample(values, v_.tokens(), o_.sampler, static_cast<uint64_t>(taken()), &token_) : status;
  }

  Status take() {
    if (!v_.is_token(token_)) return internal_error("the engine chose " + std::to_string(token_) + ", no token");
    ended_ = !forced() && v_.ends_generation(token_);
    result_.ids.push_back(token_);
    if (!ended_) return write(stream_.push(token_));
    // An end token's text is no part of the answer, whatever type the file gives it.
    result_.finish_reason = "stop";
    return {};
  }

  Status write(std::string_view text) {
    const Status status = output_.write(text);
    if (status.ok()) result_.text += text;
    return status;
  }

  const Vocabulary& v_;
  RunOptions o_;
  TextOutput output_;
  LogitsFile logits_;
  TextStream stream_;
  Generation result_;
  int64_t steps_ = 0;
  int32_t token_ = -1;
  bool ended_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace generate_detail

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

}  // namespace LANE_NAMESPACE
