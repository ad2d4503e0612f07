// The program's main.
#pragma once
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/batch.h"
#include "runtime/command_line.h"
#include "runtime/engine.cuh"
#include "runtime/generate.h"

namespace LANE_NAMESPACE {

/// Beside the program, named as it is: "model.lane" of "model" and of "model.out".
inline std::string default_sidecar() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  std::string name = length > 0 ? std::string(path, size_t(length)) : "model";
  if (::access((name + ".lane").c_str(), F_OK) == 0) return name + ".lane";
  const size_t dot = name.rfind('.'), slash = name.rfind('/');
  if (dot != std::string::npos && (slash == std::string::npos || dot > slash + 1)) name.resize(dot);
  return name + ".lane";
}

inline int fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message.c_str());
  return status.code;
}

inline int print_help(const char* program) {
  std::signal(SIGPIPE, SIG_IGN);
  const Status status = generate_detail::TextOutput(stdout).write(usage_text(program, kProgram));
  return status.ok() ? 0 : fail(status);
}

inline int program_main(const ProgramInfo& program, int argc, char** argv) {
  RunOptions o;
  if (Status s = parse_command_line({argv + (argc > 0), argv + argc}, kProgram, &o); !s.ok()) return fail(s);
  if (o.help) return print_help(argv[0]);
  const auto start = std::chrono::steady_clock::now();
  EngineOptions options;
  options.checkpoint = o.model;
  options.sidecar = o.sidecar.empty() ? default_sidecar() : o.sidecar;
  options.allow_weights_change = o.allow_weights_change;
  options.cuda_graphs = o.cuda_graphs;
  options.mem_bytes = uint64_t(o.mem_bytes);
  if (Status s = choose_context(o, program.context, &options.context); !s.ok()) return fail(s);
  Engine engine(program);
  if (Status s = engine.find(options); !s.ok()) return fail(s);
  Vocabulary vocabulary;
  const std::vector<uint8_t>& header = engine.header();
  if (Status s = read_vocabulary(*program.vocabulary, header.data(), header.size(), &vocabulary); !s.ok())
    return fail(s);
  // The prompt is known to fit before anything is loaded.
  const bool many = o.prompt_kind == PromptKind::Lines;
  std::vector<int32_t> prompt;
  if (Status s = many ? Status{} : prompt_ids(vocabulary, o, options.context, &prompt); !s.ok()) return fail(s);
  if (Status s = engine.load(); !s.ok()) return fail(s);
  if (const std::string note = engine.residence(); !note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Status status =
      many ? answer_and_print(engine, vocabulary, o, seconds) : run_and_print(engine, vocabulary, o, prompt, seconds);
  return status.ok() ? 0 : fail(status);
}

}  // namespace LANE_NAMESPACE
