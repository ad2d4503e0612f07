// lanec run: a checkpoint's step by the interpreter, where there is no GPU and nothing is to be built.
#include <chrono>

#include "commands.h"
#include "lane/error.h"
#include "lane/logos.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "lane/vocabulary.h"
#include "runtime/batch.h"
#include "runtime_status.h"

namespace lane::tools {

namespace rt = LANE_NAMESPACE;

namespace {

/// What runtime/generate.h runs: a decode step a token, in T.
template <class T>
class InterpreterEngine {
 public:
  InterpreterEngine(Interpreter<T> interpreter, int64_t context)
      : interpreter_(std::move(interpreter)), context_(context) {}

  int64_t context() const { return context_; }
  int sequences() const { return 1; }
  int32_t vocabulary_rows() const { return int32_t(interpreter_.value("logits").size()); }

  rt::Status start(int) {
    interpreter_.reset();
    position_ = 0;
    return {};
  }
  rt::Status prefill(const int32_t* ids, size_t count, rt::LogitsSink* sink) {
    for (size_t i = 0; i < count; ++i) {
      if (rt::Status s = decode(ids[i]); !s.ok()) return s;
      const float* row = nullptr;
      if (!sink) continue;
      if (rt::Status s = logits(&row, 0); !s.ok()) return s;
      if (rt::Status s = sink->row(row); !s.ok()) return s;
    }
    return {};
  }
  rt::Status decode(int32_t token) {
    interpreter_.run({{"tok", {token}}, {"pos", {int32_t(position_)}}});
    ++position_;
    return {};
  }
  rt::Status step(const rt::Fed* fed, size_t) { return decode(fed->token); }
  rt::Status logits(const float** row, int) {
    const std::span<const T> values = interpreter_.value("logits");
    row_.assign(values.begin(), values.end());
    *row = row_.data();
    return {};
  }
  rt::Status greedy_next(int32_t* token, int) {
    *token = interpreter_.integers("next")[0];
    return {};
  }
  rt::Status wait() { return {}; }
  void run_ahead(int64_t) {}  // a step is whole when it returns
  int ahead() const { return 0; }

 private:
  Interpreter<T> interpreter_;
  int64_t context_, position_ = 0;
  std::vector<float> row_;
};

template <class T>
void run(const Checkpoint& checkpoint, const Vocabulary& vocabulary, const ModelSpec& spec,
         const rt::RunOptions& options, const std::vector<int32_t>& prompt,
         std::chrono::steady_clock::time_point start) {
  const Cut decode = cut(author(spec), FormKind::Decode, 1);
  const StepGraph graph = lift(parse_logos(decode.text));
  const Constants constants(graph, checkpoint);
  check_weights(graph, checkpoint);
  const KvType kv = options.kv == "f32" ? KvType::F32 : options.kv == "q8_0" ? KvType::Q8_0 : KvType::F16;
  InterpreterEngine<T> engine(Interpreter<T>(graph, constants, kv), spec.ctx);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool many = options.prompt_kind == rt::PromptKind::Lines;
  check(many ? rt::answer_and_print(engine, vocabulary, options, seconds)
             : rt::run_and_print(engine, vocabulary, options, prompt, seconds));
}

}  // namespace

void run_command(const std::vector<std::string>& words) {
  rt::RunOptions options;
  check(rt::parse_command_line(words, rt::kLanecRun, &options));
  if (options.help) return print(rt::usage_text("lanec run", rt::kLanecRun));
  const auto start = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = read_checkpoint(options.model);
  Options compile_options;
  compile_options.ctx = options.ctx;
  const ModelSpec spec = describe_model(checkpoint, compile_options);
  const Vocabulary vocabulary = read_vocabulary(checkpoint, describe_vocabulary(checkpoint, options.pre));
  std::vector<int32_t> prompt;
  if (options.prompt_kind != rt::PromptKind::Lines) check(rt::prompt_ids(vocabulary, options, spec.ctx, &prompt));
  options.f64 ? run<double>(checkpoint, vocabulary, spec, options, prompt, start)
              : run<float>(checkpoint, vocabulary, spec, options, prompt, start);
}

}  // namespace lane::tools
