// Kernels that a GPU would answer with a hang or with garbage: the host chip aborts and says which thread did it.
#include <gtest/gtest.h>

#include "base/launch.cuh"
#include "base/published.cuh"
#include "base/warp.cuh"
#include "kernels/device_array.h"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

template <class Kernel>
void run(Kernel kernel, unsigned threads) {
  DeviceArray<float> out(256);
  expect_success(launch(nullptr, 1, threads, 0, kernel, out.data()));
  expect_success(cudaDeviceSynchronize());
}

class HostChipFault : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

__global__ void diverge_at_barriers(float* out) {
  if (threadIdx.x < 64) __syncthreads();
  out[threadIdx.x] = 1.0f;
  __syncthreads();
}
TEST_F(HostChipFault, ThreadsMeetInDifferentBarriers) {
  EXPECT_DEATH(run(diverge_at_barriers, 128), "different __syncthreads \\[block 0,0,0 thread 64,0,0\\]");
}

__global__ void wait_for_nobody(float* out) {
  if (threadIdx.x == 0) {
    while (out[0] != 0.0f) __syncwarp();
  }
  __syncthreads();
}
TEST_F(HostChipFault, ThreadsWaitForEachOther) { EXPECT_DEATH(run(wait_for_nobody, 64), "deadlock"); }

__global__ void wait_for_a_value(float* out) {
  const auto* from = reinterpret_cast<const float4*>(out);
  if (threadIdx.x < 4) out[threadIdx.x] = 0.f;
  __syncwarp();
  out[4 + threadIdx.x] = await_published(from, read_published(from), [] {}).x;
}
TEST_F(HostChipFault, AValueIsPublishedByNobody) {
  const auto wait = [] {
    host_chip::most_tries = 1000;
    run(wait_for_a_value, 32);
  };
  EXPECT_DEATH(wait(), "a value that no other block publishes \\[block 0,0,0");
}

__global__ void diverge_at_shuffles(float* out) {
  float v = float(threadIdx.x);
  if (threadIdx.x & 1) {
    v = __shfl_xor_sync(LANE_FULL_WARP, v, 2);
  } else {
    v = __shfl_xor_sync(LANE_FULL_WARP, v, 4);
  }
  out[threadIdx.x] = v;
}
TEST_F(HostChipFault, LanesMeetInDifferentShuffles) {
  EXPECT_DEATH(run(diverge_at_shuffles, 32), "lanes of one warp meet in different collectives");
}

__global__ void shuffle_with_half_a_mask(float* out) {
  float v = float(threadIdx.x);
  if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffu, v, 2);
  out[threadIdx.x] = v;
}
TEST_F(HostChipFault, AMaskLeavesLanesOut) {
  EXPECT_DEATH(run(shuffle_with_half_a_mask, 32), "mask leaves out live lanes");
}

__global__ void shuffle_after_exits(float* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_xor_sync(LANE_FULL_WARP, float(threadIdx.x), 1);
}
TEST_F(HostChipFault, LanesReturnedBeforeAShuffle) {
  EXPECT_DEATH(run(shuffle_after_exits, 32), "without all 32 lanes");
}

__global__ void overflow_the_stack(float* out) {
  volatile float large[40000];
  for (int i = 0; i < 40000; i += 64) large[39999 - i] = 1.0f;
  out[threadIdx.x] = large[39999];
}
TEST_F(HostChipFault, AFrameIsLargerThanTheStack) { EXPECT_DEATH(run(overflow_the_stack, 32), ""); }

#if defined(__SANITIZE_ADDRESS__)
__global__ void write_past_the_end(float* out) { out[threadIdx.x + 225] = 1.0f; }
TEST_F(HostChipFault, AKernelWritesPastAnArray) { EXPECT_DEATH(run(write_past_the_end, 32), "heap-buffer-overflow"); }

__global__ void read_misaligned(float* out) {
  out[threadIdx.x] = reinterpret_cast<const float4*>(reinterpret_cast<const char*>(out) + 4)->x;
}
TEST_F(HostChipFault, AVectorIsMisaligned) { EXPECT_DEATH(run(read_misaligned, 32), "misaligned address"); }
#endif

#if defined(__SANITIZE_THREAD__)
__global__ void exchange_without_a_barrier(float* out) {
  __shared__ float shared[256];
  shared[threadIdx.x] = float(threadIdx.x);
  out[threadIdx.x] = shared[(threadIdx.x + 37) & 255];
}
TEST_F(HostChipFault, ABarrierIsMissing) {
  EXPECT_EXIT((run(exchange_without_a_barrier, 256), std::exit(0)), testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace lane::test
