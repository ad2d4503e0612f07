#include "kernels/format_kernels_of.h"
#include "quant/all.cuh"

namespace lane::test {

std::vector<FormatKernels> super_block_kernels() {
  using namespace LANE_NAMESPACE;
  return {kernels_of<Q2_K>("Q2_K"), kernels_of<Q3_K>("Q3_K"), kernels_of<Q4_K>("Q4_K"),
          kernels_of<Q5_K>("Q5_K"), kernels_of<Q6_K>("Q6_K"), kernels_of<IQ4_XS>("IQ4_XS")};
}

}  // namespace lane::test
