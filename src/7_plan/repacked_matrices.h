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

/// A launch of such products: streamed_geometry of them.
struct StreamedLaunch : RepackedMatrices {
  LANE_NAMESPACE::StreamedGeometry geometry;
};
StreamedLaunch streamed_launch(const Weights& weights, const Options& options, const Chip& chip,
                               const std::vector<const StepOp*>& products, bool gated);
/// Of the members of `op`, which read one vector.
StreamedLaunch streamed_launch(const Lowering& to, const StepOp& op);

/// What kernels of up to three matrices take of each: all outs and all weights; then biases, rows, blocks,
/// rows a block and rings. Null or 0 of those that are not there.
struct MatricesArgs {
  std::vector<Arg> outs, weights, shares;
};
MatricesArgs matrices_args(const Lowering& to, const StepOp& op, const StreamedLaunch& s);

/// `layouts` layouts (the last repeats), then columns and words: template arguments of the kernels.
void add_layouts(Launch& launch, const RepackedMatrices& matrices, size_t layouts);

inline void append(std::vector<Arg>& args, const std::vector<Arg>& more) {
  args.insert(args.end(), more.begin(), more.end());
}

}  // namespace lane
