// What launches of products of repacked matrices share (lower_streamed.cpp, lower_chained.cpp).
#pragma once
#include <vector>

#include "7_plan/lower.h"
#include "ops/streamed_geometry.h"

namespace lane {

/// The matrices of some products of one vector, and what geometry asks of them; gate and up count as one there.
struct RepackedMatrices {
  std::vector<const Placement*> placements;
  std::vector<LANE_NAMESPACE::StreamedMatrix> shapes;
  int columns = 0, words = 0;
};
const Placement& matrix_of(const Weights& weights, const StepOp& product);
RepackedMatrices repacked_matrices(const Weights& weights, const Options& options,
                                   const std::vector<const StepOp*>& products);

/// `layouts` layouts (the last repeats), then columns and words: template arguments of the kernels.
void add_layouts(Launch& launch, const RepackedMatrices& matrices, size_t layouts);

inline void append(std::vector<Arg>& args, const std::vector<Arg>& more) {
  args.insert(args.end(), more.begin(), more.end());
}

}  // namespace lane
