// The C interface of a program, behind its names: every call returns 0 or an exit code, and keeps a message. Nothing
// exits, prints or throws across it; a model is one thread's at a time.
#pragma once
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "runtime/engine.cuh"
#include "runtime/sampler.h"

namespace LANE_NAMESPACE {

struct Model {
  explicit Model(const ProgramInfo& program) : engine(program) {}
  Engine engine;
  Vocabulary vocabulary;
  std::string message;
};

/// What `call` returns, or what it throws, as a Status: memory is the one thing that may run out anywhere.
template <class Call>
Status guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return {kExitEnvironment, std::string("Memory: ") + e.what()};
  }
}

template <class Call>
int guarded(void* model, const Call& call) {
  Model& m = *static_cast<Model*>(model);
  Status status = guarded([&] { return call(m); });
  m.message = std::move(status.message);
  return status.code;
}

/// `context` 0: as compiled. On failure `*model` is null and `message` (of `bytes` bytes) says why.
inline int model_open(const ProgramInfo& program, const char* checkpoint, const char* sidecar, int context,
                      void** model, char* message, size_t bytes) {
  *model = nullptr;
  const Status status = guarded([&]() -> Status {
    auto m = std::make_unique<Model>(program);
    EngineOptions options;
    options.checkpoint = checkpoint ? checkpoint : "";
    options.sidecar = sidecar ? sidecar : "";
    options.context = context;
    if (context < 0 || context > program.context) {
      return usage_error("context " + std::to_string(context) + "; accepted are 0 to " +
                         std::to_string(program.context));
    }
    if (Status s = m->engine.find(options); !s.ok()) return s;
    const std::vector<uint8_t>& header = m->engine.header();
    if (Status s = read_vocabulary(*program.vocabulary, header.data(), header.size(), &m->vocabulary); !s.ok())
      return s;
    if (Status s = m->engine.load(); !s.ok()) return s;
    *model = m.release();
    return {};
  });
  if (message && bytes) std::snprintf(message, bytes, "%s", status.message.c_str());
  return status.code;
}

inline int model_prefill(void* model, const int* ids, int count) {
  return guarded(model, [&](Model& m) {
    if (count < 1) return usage_error("prefill of " + std::to_string(count) + " tokens; accepted are 1 and more");
    return m.engine.prefill(ids, size_t(count), nullptr);
  });
}

inline int model_decode(void* model, int id) {
  return guarded(model, [&](Model& m) { return m.engine.decode(id); });
}

/// Copies the latest position's logits, vocabulary_rows() of them.
inline int model_logits(void* model, float* row) {
  return guarded(model, [&](Model& m) {
    const float* from = nullptr;
    Status status = m.engine.logits(&from, 0);
    if (status.ok()) std::copy_n(from, m.engine.vocabulary_rows(), row);
    return status;
  });
}

/// Chooses after the latest position. Draws are numbered by position: the same calls give the same ids.
inline int model_sample(void* model, const SamplerOptions& options, int* id) {
  return guarded(model, [&](Model& m) {
    const float* row = nullptr;
    Status status = m.engine.logits(&row, 0);
    return status.ok() ? sample(row, m.vocabulary.tokens(), options, uint64_t(m.engine.position()), id) : status;
  });
}

inline int model_reset(void* model) {
  return guarded(model, [](Model& m) { return m.engine.reset(); });
}

inline const Model& model_of(const void* model) { return *static_cast<const Model*>(model); }
inline int model_context(const void* model) { return int(model_of(model).engine.context()); }
inline int model_vocabulary_rows(const void* model) { return model_of(model).engine.vocabulary_rows(); }
inline const char* model_message(const void* model) { return model_of(model).message.c_str(); }
inline void model_close(void* model) { delete static_cast<Model*>(model); }

}  // namespace LANE_NAMESPACE
