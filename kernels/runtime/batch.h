// --prompts: many prompts, as many side by side as the engine has sequences. Each has its own options, position, state,
// draws and end; a slot that falls free takes the next line.
#pragma once
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/namespace.h"
#include "runtime/generate.h"
#include "runtime/request.h"

namespace LANE_NAMESPACE {

/// What a run over many prompts did.
struct Totals {
  size_t answers = 0, refused = 0, tokens = 0;
};

namespace batch_detail {

/// The lines of a file that are not blank, one after the other; without the byte order mark that some editors write
/// first.
class RequestLines {
 public:
  ~RequestLines() {
    if (file_ && file_ != stdin) std::fclose(file_);
  }
  Status open(const std::string& path) {
    path_ = path;
    file_ = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
    return file_ ? Status{} : generate_detail::system_error("cannot open", path);
  }
  /// `*found` is false at the end.
  Status next(std::string* line, bool* found) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    do {
      if (Status s = read(line, found); !s.ok() || !*found) return s;
      if (at_start_ && std::string_view(*line).substr(0, kByteOrderMark.size()) == kByteOrderMark)
        line->erase(0, kByteOrderMark.size());
      at_start_ = false;
    } while (line->find_first_not_of(" \t\r") == std::string::npos);
    return {};
  }

 private:
  /// One line; of a line that is longer than any prompt only so much that it is known to be.
  Status read(std::string* line, bool* found) {
    line->clear();
    int c = std::getc(file_);
    *found = c != EOF;
    for (; c != EOF && c != '\n'; c = std::getc(file_)) {
      if (line->size() < kLongestText) line->push_back(static_cast<char>(c));
    }
    return std::ferror(file_) ? generate_detail::system_error("cannot read", path_) : Status{};
  }

  std::string path_;
  std::FILE* file_ = nullptr;
  bool at_start_ = true;
};

/// Prints answers in the order of their lines, each as soon as all before it are printed.
class Answers {
 public:
  explicit Answers(std::FILE* out) : output_(out) {}
  Status add(size_t line, std::string answer) {
    waiting_.emplace(line, std::move(answer));
    Status status;
    for (; status.ok() && !waiting_.empty() && waiting_.begin()->first == printed_; ++printed_) {
      status = output_.write(waiting_.begin()->second + "\n");
      waiting_.erase(waiting_.begin());
    }
    return status;
  }
  bool reader_gone() const { return output_.reader_gone(); }

 private:
  generate_detail::TextOutput output_;
  std::map<size_t, std::string> waiting_;
  size_t printed_ = 0;
};

template <class Engine>
class Batch {
 public:
  Batch(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options, double load_seconds, std::FILE* out,
        Totals* totals)
      : engine_(engine),
        v_(vocabulary),
        o_(options),
        load_seconds_(load_seconds),
        answers_(out),
        totals_(totals),
        slots_(static_cast<size_t>(engine.sequences())) {}

  Status run() {
    Status status = lines_.open(o_.prompt);
    if (status.ok()) status = fill();
    while (status.ok() && running() > 0 && (!answers_.reader_gone() || !o_.dump_logits.empty())) {
      status = step();
      if (status.ok() && engine_.ahead() == 0) status = fill();
    }
    return status;
  }

 private:
  struct Running {
    size_t line;
    generate_detail::Sequence sequence;
  };

  /// Gives free slots the lines that come next.
  Status fill() {
    for (size_t slot = 0; slot < slots_.size() && !at_end_; ++slot) {
      while (!slots_[slot] && !at_end_) {
        if (Status s = take_line(slot); !s.ok()) return s;
      }
    }
    return {};
  }

  Status take_line(size_t slot) {
    std::string text;
    bool found = false;
    if (Status s = lines_.next(&text, &found); !s.ok()) return s;
    at_end_ = !found;
    if (at_end_) return {};
    const size_t line = lines_taken_++;
    RunOptions options;
    std::vector<int32_t> prompt;
    Status status = parse_request(text, o_, &options);
    if (status.ok()) status = prompt_ids(v_, options, engine_.context(), &prompt, {"tokens", "force"});
    if (status.code == kExitUsage) {
      ++totals_->refused;
      return answers_.add(line, "{\"error\": " + json_string(status.message) + "}");
    }
    if (!options.dump_logits.empty()) options.dump_logits += "." + std::to_string(line);
    if (status.ok()) status = begin(slot, line, options, prompt);
    return status;
  }

  Status begin(size_t slot, size_t line, const RunOptions& options, const std::vector<int32_t>& prompt) {
    slots_[slot].reset(new Running{line, {v_, options, prompt, nullptr}});
    generate_detail::Sequence& sequence = slots_[slot]->sequence;
    Status status = engine_.start(static_cast<int>(slot));
    if (status.ok()) status = sequence.prefill(engine_);
    if (status.ok() && !sequence.done()) status = sequence.next(engine_, 0);
    return status.ok() ? answer_if_done(slot) : status;
  }

  /// One token more for every sequence that runs.
  Status step() {
    std::vector<Fed> fed;
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot]) continue;
      const generate_detail::Sequence& sequence = slots_[slot]->sequence;
      fed.push_back({static_cast<int>(slot), sequence.token(), sequence.position()});
    }
    if (engine_.ahead() == 0) ended_ = false;
    Status status = engine_.step(fed.data(), fed.size());
    engine_.run_ahead(fed_blindly());
    for (size_t row = 0; status.ok() && row < fed.size(); ++row) {
      const size_t slot = static_cast<size_t>(fed[row].slot);
      status = slots_[slot]->sequence.next(engine_, static_cast<int>(row));
      if (status.ok()) status = answer_if_done(slot);
    }
    return status;
  }

  /// Steps that may be launched before they are asked for: none once a sequence has ended, so that the next step is one
  /// of those that run, and of those that take the free slots.
  int64_t fed_blindly() const {
    int64_t steps = ended_ ? 0 : INT64_MAX;
    for (const auto& slot : slots_) {
      if (slot) steps = std::min(steps, slot->sequence.fed_blindly());
    }
    return steps;
  }

  Status answer_if_done(size_t slot) {
    Running& running = *slots_[slot];
    if (!running.sequence.done()) return {};
    if (Status s = running.sequence.finish(engine_); !s.ok()) return s;
    Generation& result = running.sequence.result();
    result.load_seconds = load_seconds_;
    ++totals_->answers;
    totals_->tokens += result.ids.size();
    const Status status = answers_.add(running.line, to_json(result));
    slots_[slot].reset();
    ended_ = true;
    return status;
  }

  size_t running() const {
    size_t count = 0;
    for (const auto& slot : slots_) count += slot != nullptr;
    return count;
  }

  Engine& engine_;
  const Vocabulary& v_;
  const RunOptions& o_;
  double load_seconds_;
  RequestLines lines_;
  Answers answers_;
  Totals* totals_;
  std::vector<std::unique_ptr<Running>> slots_;
  size_t lines_taken_ = 0;
  bool at_end_ = false;  // of the lines
  bool ended_ = false;   // a sequence, since the host fed a step
};

}  // namespace batch_detail

/// Answers every line of --prompts on `out`: a line of JSON each, in their order. What a line says wrong is its own
/// answer, {"error": why}; files, memory and the device end the run.
template <class Engine>
Status answer_prompts(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options, double load_seconds,
                      std::FILE* out, Totals* totals) {
  return batch_detail::Batch<Engine>(engine, vocabulary, options, load_seconds, out, totals).run();
}

/// As run_and_print(), of --prompts. Lines are refused one by one; where all of them are, so is the run (exit 2).
template <class Engine>
Status answer_and_print(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options, double load_seconds) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  const Status status = answer_prompts(engine, vocabulary, options, load_seconds, stdout, &totals);
  const double seconds = generate_detail::seconds_since(start);
  const std::string summary = "load " + generate_detail::fixed(load_seconds) + " s; answered " +
                              std::to_string(totals.answers) + " prompts, refused " + std::to_string(totals.refused) +
                              "; generated " + std::to_string(totals.tokens) + " tokens in " +
                              generate_detail::fixed(seconds) + " s";
  if (status.ok()) std::fprintf(stderr, "%s\n", summary.c_str());
  if (status.ok() && totals.answers == 0 && totals.refused > 0)
    return usage_error("no line of --prompts could be answered; each has its error in the output");
  return status;
}

}  // namespace LANE_NAMESPACE
