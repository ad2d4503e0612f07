#include <fmt/format.h>

#include "lane/chip.h"
#include "lane/error.h"
#include "lane/vocabulary.h"
#include "parts.h"

namespace lane {
namespace {

/// Each line as a comment.
std::string commented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += end == 0 ? "//\n" : fmt::format("//   {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// The decode step's schedule whole, the others' first line: the code says each launch again.
std::string schedule_comment(const Form& form, const Lane& lane) {
  const std::string text = to_text(form.schedule, lane.weights);
  return commented(&form == &lane.forms[0] ? text : text.substr(0, text.find('\n')));
}

std::string form_comment(const Form& form, const Lane& lane) {
  const Identity& id = form.cut.identity;
  return fmt::format("//\n// Form {}: {}, {} {}, context {}\n// cut     {}\n// program {}\n//\n", form.cut.tag(),
                     to_text(id.kind), id.rows, id.kind == FormKind::Batch ? "sequences" : "rows", id.ctx,
                     id.cut_digest, id.program_digest) +
         commented(form.cut.text) + "//\n" + schedule_comment(form, lane);
}

std::string header(const Lane& lane) {
  const bool host = lane.options.chip == "host";
  std::string text = fmt::format(
      "// Written by lanec {}. A language model's step as a program: it loads the checkpoint that it was compiled "
      "from,\n"
      "// runs a prompt and generates text. Build it with\n//   {}\n"
      "// -DLANE_NO_MAIN leaves out main; what remains is the C interface at the end.\n"
      "//\n// chip {}, activations {}, cache {}\n",
      LANE_VERSION,
      host ? "g++ -std=c++17 -O3 -x c++ model.cu -o model -pthread -lboost_context"
           : fmt::format("nvcc -O3 -std=c++17 -gencode {} model.cu -o model", find_chip(lane.options.chip)->gencode),
      lane.options.chip, to_text(lane.options.activations), to_text(lane.options.kv));
  for (const Form& form : lane.forms) text += form_comment(form, lane);
  return text + "\n";
}

std::set<std::string> files(const Lane& lane) {
  std::set<std::string> all = kernel_files(lane);
  all.insert({"base/launch.cuh", "ops/finite.cuh", "quant/f32.cuh", "runtime/interface.cuh", "runtime/main.cuh"});
  for (const Placement& p : lane.weights.placements) {
    if (p.is_matrix()) all.insert(std::string(p.format->kernel));
  }
  return all;
}

/// The C interface: docs/c_interface.md.
std::string interface(std::string_view prefix) {
  std::string text = R"(
extern "C" {
int PREFIX_open(const char* checkpoint, const char* sidecar, int context, void** model, char* message, size_t bytes) {
  return PREFIX::model_open(PREFIX::kModel, checkpoint, sidecar, context, model, message, bytes);
}
int PREFIX_context(const void* model) { return PREFIX::model_context(model); }
int PREFIX_vocabulary_rows(const void* model) { return PREFIX::model_vocabulary_rows(model); }
int PREFIX_prefill(void* model, const int* ids, int count) { return PREFIX::model_prefill(model, ids, count); }
int PREFIX_decode(void* model, int id) { return PREFIX::model_decode(model, id); }
int PREFIX_logits(void* model, float* row) { return PREFIX::model_logits(model, row); }
int PREFIX_sample(void* model, double temperature, int top_k, double top_p, double min_p, uint64_t seed, int* id) {
  return PREFIX::model_sample(model, {temperature, top_k, top_p, min_p, seed}, id);
}
int PREFIX_reset(void* model) { return PREFIX::model_reset(model); }
const char* PREFIX_message(const void* model) { return PREFIX::model_message(model); }
void PREFIX_close(void* model) { PREFIX::model_close(model); }
}

#ifndef LANE_NO_MAIN
int main(int argc, char** argv) { return PREFIX::program_main(PREFIX::kModel, argc, argv); }
#endif
)";
  constexpr std::string_view kMark = "PREFIX";
  for (size_t at = 0; (at = text.find(kMark, at)) != std::string::npos; at += prefix.size()) {
    text.replace(at, kMark.size(), prefix);
  }
  return text;
}

}  // namespace

Program emit(const Lane& lane) {
  const std::string& prefix = lane.options.symbol_prefix;
  Program program;
  program.cu = header(lane) + flatten(files(lane), lane.options.chip == "host", prefix);
  program.cu += fmt::format("\n// ---- this model\n\nnamespace {} {{\n\n", prefix);
  for (const Form& form : lane.forms) program.cu += step_function(form, lane) + head_function(form, lane) + "\n";
  program.cu += prepare_function(lane) + "\n";
  program.cu += to_cpp(describe_vocabulary(lane.checkpoint, lane.options.pre), "kVocabulary") + "\n";
  program.cu += program_tables(lane) + fmt::format("\n}}  // namespace {}\n", prefix) + interface(prefix);
  program.sidecar = write_sidecar(lane.weights, lane.checkpoint.shards.at(0).path);
  return program;
}

}  // namespace lane
