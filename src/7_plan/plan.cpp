#include "lane/plan.h"

#include "7_plan/lower.h"

namespace lane {

Schedule plan(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options,
              const Chip& chip) {
  return Lowering(cut, graph, weights, options, chip).run();
}

}  // namespace lane
