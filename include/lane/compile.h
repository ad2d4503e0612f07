// The whole compiler: a checkpoint to a lane, and a lane to a program.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lane/arena.h"
#include "lane/branches.h"
#include "lane/gguf.h"
#include "lane/graph.h"
#include "lane/options.h"
#include "lane/plan.h"
#include "lane/program.h"
#include "lane/residence.h"
#include "lane/spec.h"
#include "lane/vocabulary.h"
#include "lane/weights.h"

namespace lane {

/// One compiled step.
struct Form {
  Cut cut;  // kind, rows, identity, LOGOS text
  StepGraph graph;
  Schedule schedule;
  Branches branches;
  Arena arena;
};

/// A model's forms, the decode step first, and what they share.
struct Lane {
  Options options;
  Checkpoint checkpoint;
  ModelSpec spec;
  std::vector<Form> forms;
  Weights weights;
  Residence residence;
};

/// Called with each product as it is made: the stage ("spec", "logos", …), the form's tag ("" where it belongs to all),
/// a printer.
using StageHook =
    std::function<void(std::string_view stage, std::string_view tag, const std::function<std::string()>& text)>;

/// `logos_text` empty: the model's own program; else a text a person wrote for the decode step.
Lane compile(const std::filesystem::path& checkpoint, const Options& options, const std::string& logos_text = "",
             const StageHook& hook = {});

}  // namespace lane
