// From a prompt to text, over any engine that computes a model's steps. An emitted program's engine replays CUDA
// graphs; `lanec run`'s is the interpreter.
//
// An engine has room for a few sequences of positions, all empty at first, and computes one token each of one or
// several in a step. Rows are numbered as the latest step was given its tokens; after prefill() and decode() there is
// row 0 alone.
//   int64_t context() const                 the positions a sequence has room for
//   int sequences() const                   how many have room; slots 0 and up
//   int32_t vocabulary_rows() const         logits a position; at least the vocabulary's tokens
//   Status start(int slot)                  the slot's sequence is empty, and the one that the next two append to
//   Status prefill(const int32_t* ids, size_t count, LogitsSink* sink)
//                                           appends `count` >= 1 tokens; `sink`, where not null, takes each one's
//                                           logits in order
//   Status decode(int32_t token)            appends one token
//   Status step(const Fed* fed, size_t count)
//                                           appends a token to each of `count` sequences; while steps are ahead (see
//                                           below), to those of the latest step or some of them
//   Status wait()                           until what prefill(), decode() or step() were given last is computed
//   Status logits(const float** row, int r) of row r; valid until the next call
//   Status greedy_next(int32_t* token, int r)
//                                           the highest logit of row r among the vocabulary's tokens
//   void run_ahead(int64_t steps)           a promise: each of the next `steps` calls of decode() or step() passes what
//                                           greedy_next() gave, though there may be fewer, and fewer sequences; so
//                                           steps may be launched before they are asked for
//   int ahead() const                       steps launched and not asked for yet
#pragma once
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/namespace.h"
#include "runtime/command_line.h"
#include "runtime/escapes.h"
#include "runtime/output.h"
#include "runtime/sequence.h"
#include "runtime/status.h"
#include "runtime/tokenizer.h"
#include "runtime/vocabulary.h"

namespace LANE_NAMESPACE {

/// A token for the sequence in a slot, and the position that it takes: the sequence's length before.
struct Fed {
  int slot;
  int32_t token;
  int64_t position;
};

namespace generate_detail {

inline Status check_ids(const char* option, const std::vector<int32_t>& ids, int32_t tokens) {
  for (int32_t id : ids) {
    if (id < 0 || id >= tokens) {
      return usage_error(std::string(option) + ": " + std::to_string(id) + " is no token; the vocabulary has " +
                         std::to_string(tokens) + ", from 0");
    }
  }
  return {};
}

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

/// What messages call the prompt's ids and the forced ones.
struct IdsNames {
  const char *prompt = "--tokens", *forced = "--force";
};

/// The prompt's ids, checked against `context` and the vocabulary, before anything is loaded. An empty prompt is the
/// begin token alone, and refused (exit 2) where the vocabulary adds none.
inline Status prompt_ids(const Vocabulary& vocabulary, const RunOptions& options, int64_t context,
                         std::vector<int32_t>* ids, const IdsNames& names = {}) {
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
  const Status status = generate_detail::check_ids(names.prompt, *ids, vocabulary.tokens());
  return status.ok() ? generate_detail::check_ids(names.forced, options.forced, vocabulary.tokens()) : status;
}

/// Continues `prompt` and writes the text to `out` (null: nowhere) as it comes. With P prompt ids and M generated ones,
/// --dump-logits gets P + M - 1 rows, or P where M is 0.
template <class Engine>
Status generate(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options,
                const std::vector<int32_t>& prompt, std::FILE* out, Generation* result) {
  generate_detail::Sequence sequence(vocabulary, options, prompt, out);
  Status status = sequence.prefill(engine);
  if (status.ok()) engine.run_ahead(sequence.fed_blindly());
  if (status.ok() && !sequence.done()) status = sequence.next(engine, 0);
  while (status.ok() && !sequence.done()) {
    status = engine.decode(sequence.token());
    if (status.ok()) status = sequence.next(engine, 0);
  }
  if (status.ok()) status = sequence.finish(engine);
  *result = std::move(sequence.result());
  return status;
}

/// A whole run after its options are parsed: text or JSON on standard output, a summary on standard error. The caller
/// has opened the engine for `prompt` (see prompt_ids) and measured that; what it says of a failure begins a line.
template <class Engine>
Status run_and_print(Engine& engine, const Vocabulary& vocabulary, const RunOptions& options,
                     const std::vector<int32_t>& prompt, double load_seconds) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends the output, not the process
  Generation result;
  Status status = generate(engine, vocabulary, options, prompt, options.json ? nullptr : stdout, &result);
  result.load_seconds = load_seconds;
  if (status.ok() && options.json) status = generate_detail::TextOutput(stdout).write(to_json(result) + "\n");
  if (!result.text.empty() && !options.json) std::fputs("\n", stderr);
  if (status.ok()) std::fprintf(stderr, "%s\n", summary(result).c_str());
  return status;
}

}  // namespace LANE_NAMESPACE
