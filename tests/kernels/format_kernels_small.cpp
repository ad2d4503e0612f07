#include "kernels/format_kernels_of.h"
#include "quant/all.cuh"

namespace lane::test {

std::vector<FormatKernels> small_block_kernels() {
  using namespace LANE_NAMESPACE;
  return {kernels_of<F32>("F32"),       kernels_of<F16>("F16"),    kernels_of<BF16>("BF16"), kernels_of<Q4_0>("Q4_0"),
          kernels_of<Q4_1>("Q4_1"),     kernels_of<Q5_0>("Q5_0"),  kernels_of<Q5_1>("Q5_1"), kernels_of<Q8_0>("Q8_0"),
          kernels_of<IQ4_NL>("IQ4_NL"), kernels_of<MXFP4>("MXFP4")};
}

}  // namespace lane::test
