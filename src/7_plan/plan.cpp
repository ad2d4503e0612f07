#include "lane/plan.h"

#include "7_plan/lower.h"
#include "7_plan/step.h"

namespace lane {

Schedule plan(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options,
              const Chip& chip) {
  Schedule schedule = Lowering(cut, graph, weights, options, chip).run();
  schedule.layer_launches = launches_of_layers(graph, schedule.launches);
  return schedule;
}

}  // namespace lane
