// A golden case compiled to schedules: the forms asked for, over the same weights.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lane/logos.h"
#include "lane/plan.h"
#include "lane/program.h"
#include "lane/spec.h"
#include "support/files.h"
#include "support/golden_case.h"

namespace lane::test {

struct CompiledCase {
  std::shared_ptr<TempFolder> folder = std::make_shared<TempFolder>();  // its own: tests of one case run side by side
  GoldenCase golden;
  Checkpoint checkpoint;
  ModelProgram program;
  Options options;
  std::vector<StepGraph> graphs;
  Weights weights;
  std::vector<Schedule> schedules;  // one a form

  struct Form {
    FormKind kind;
    int64_t rows;
  };

  CompiledCase(const std::string& name, const std::vector<Form>& forms, const Options& wanted, const Chip& chip)
      : golden(load_case(name)), options(wanted) {
    options.chip = chip.name;
    checkpoint = read_checkpoint(write_case(golden, folder->path()));
    program = author(describe_model(checkpoint, options));
    std::vector<Cut> cuts;
    for (const Form& form : forms) cuts.push_back(cut(program, form.kind, form.rows));
    for (const Cut& c : cuts) graphs.push_back(lift(parse_logos(c.text)));
    std::vector<const StepGraph*> pointers;
    for (const StepGraph& graph : graphs) pointers.push_back(&graph);
    weights = place_weights(pointers, checkpoint, options);
    verify(weights, checkpoint);
    for (size_t i = 0; i < cuts.size(); i++) {
      schedules.push_back(plan(cuts[i], graphs[i], weights, options, chip));
      verify(schedules.back(), weights);
    }
  }

  std::vector<int> all_ids() const {
    std::vector<int> ids = golden.prompt_ids;
    ids.insert(ids.end(), golden.greedy_ids.begin(), golden.greedy_ids.end());
    return ids;
  }
};

}  // namespace lane::test
