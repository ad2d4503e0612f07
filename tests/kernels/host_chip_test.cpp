// The host chip itself: its blocks, collectives and runtime API, and the faults of kernels that it must not let pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/launch.cuh"
#include "base/warp.cuh"
#include "kernels/device_array.h"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

// ---- blocks and collectives

__global__ void exchange_in_block(float* out) {
  __shared__ float shared[256];
  const int t = int(threadIdx.x);
  shared[t] = float(t);
  __syncthreads();
  out[t] = shared[(t + 37) & 255];
}
TEST(HostChip, BarrierOrdersABlock) {
  DeviceArray<float> out(256);
  expect_success(launch(nullptr, 4, 256, 0, exchange_in_block, out.data()));
  const auto values = out.values();
  for (int i = 0; i < 256; i++) EXPECT_EQ(values[size_t(i)], float((i + 37) & 255));
}

__global__ void reduce_each_way(float* out) {
  const int lane = lane_index();
  const float v = 1.0f / float(lane + 1);
  float butterfly = v;
  for (int half = 16; half; half /= 2) butterfly += __shfl_xor_sync(LANE_FULL_WARP, butterfly, half);
  const float sum = warp_sum(v), greatest = warp_max(v), led = warp_sum_to_leader(v);
  if (lane == 0) out[0] = butterfly, out[1] = sum, out[2] = greatest;
  if (lane == kWarpLeader) out[3] = led;
}
TEST(HostChip, ReductionsHaveTheBitsOfTheButterfly) {
  DeviceArray<float> out(4);
  expect_success(launch(nullptr, 1, 32, 0, reduce_each_way, out.data()));
  const auto values = out.values();
  EXPECT_EQ(values[1], values[0]);
  EXPECT_EQ(values[2], 1.0f);
  EXPECT_EQ(values[3], values[0]);
}

__global__ void lead_many_sums(double* out, int count) {
  double total = 0;
  for (int i = 0; i < count; i++) {
    const double sum = warp_sum_to_leader(double(i));
    if (lane_index() == kWarpLeader) total += sum;
  }
  if (lane_index() == kWarpLeader) out[warp_index()] = total;
}
TEST(HostChip, LanesMayRunAheadOfTheirLeader) {
  DeviceArray<double> out(2);
  expect_success(launch(nullptr, 1, 64, 0, lead_many_sums, out.data(), 1000));
  EXPECT_EQ(out.values(), std::vector<double>(2, 32.0 * 999 * 1000 / 2));
}

__global__ void sum_with_early_exits(int* out) {
  __shared__ int sum;
  const int t = int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  if (t == 0) sum = 0;
  __syncthreads();
  if (t >= 90) return;
  atomicAdd(&sum, t);
  __syncthreads();
  if (t == 0) out[blockIdx.x] = sum;
}
TEST(HostChip, ThreadsThatReturnedDoNotCountAtBarriers) {
  DeviceArray<int> out(3);
  expect_success(launch(nullptr, 3, dim3(10, 5, 2), 0, sum_with_early_exits, out.data()));
  EXPECT_EQ(out.values(), std::vector<int>(3, 89 * 90 / 2));
}

__global__ void vote(unsigned* out) {
  const int lane = lane_index();
  const unsigned odd = __ballot_sync(LANE_FULL_WARP, lane & 1);
  const int first = __shfl_sync(LANE_FULL_WARP, lane, 5), down = __shfl_down_sync(LANE_FULL_WARP, lane, 1);
  const int up = __shfl_up_sync(LANE_FULL_WARP, lane, 2);
  if (lane == 31) out[0] = odd, out[1] = unsigned(first), out[2] = unsigned(down), out[3] = unsigned(up);
}
TEST(HostChip, VotesAndShuffles) {
  DeviceArray<unsigned> out(4);
  expect_success(launch(nullptr, 1, 32, 0, vote, out.data()));
  EXPECT_EQ(out.values(), (std::vector<unsigned>{0xaaaaaaaau, 5, 31, 29}));
}

__global__ void read_dynamic_shared(float* out) {
  LANE_DYNAMIC_SHARED(float, shared);
  out[threadIdx.x] = shared[threadIdx.x];
}
TEST(HostChip, DynamicSharedMemoryStartsAsNaN) {
  DeviceArray<float> out(32);
  expect_success(launch(nullptr, 1, 32, 128, read_dynamic_shared, out.data()));
  for (float v : out.values()) EXPECT_TRUE(std::isnan(v));
}

// ---- half-precision types

TEST(HostChip, HalvesSurviveTheWayToFloatAndBack) {
  for (unsigned bits = 0; bits < 0x10000; bits++) {
    const float value = __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    if (std::isnan(value)) continue;
    ASSERT_EQ(__half_as_ushort(__float2half(value)), bits);
  }
}
TEST(HostChip, RoundsHalvesToEven) {
  EXPECT_EQ(__half_as_ushort(__float2half(1.0f + 0x1p-11f)), 0x3c00);             // a tie, to even
  EXPECT_EQ(__half_as_ushort(__float2half(1.0f + 0x3p-11f)), 0x3c02);             // a tie, to even
  EXPECT_EQ(__half_as_ushort(__float2half(1.0f + 0x1p-11f + 0x1p-20f)), 0x3c01);  // above it
  EXPECT_EQ(__half_as_ushort(__float2half(65519.0f)), 0x7bff);
  EXPECT_EQ(__half_as_ushort(__float2half(65520.0f)), 0x7c00);
  EXPECT_EQ(__half_as_ushort(__float2half(-0x1p-25f)), 0x8000);  // a tie with zero
  EXPECT_EQ(__half_as_ushort(__float2half(0x1.8p-25f)), 0x0001);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(1.0f + 0x1p-8f)), 0x3f80);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(1.0f + 0x3p-8f)), 0x3f82);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(3.4028235e38f)), 0x7f80);
}

// ---- the runtime API

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void add_one(float* out) { out[threadIdx.x] += 1.0f; }

TEST(HostChip, StreamsRunWhereSomethingSynchronises) {
  DeviceArray<float> out(std::vector<float>(32, 0.0f));
  cudaStream_t stream;
  expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float host[32] = {-1.0f};
  expect_success(launch(stream, 1, 32, 0, fill, out.data(), 7.0f));
  expect_success(cudaMemcpyAsync(host, out.data(), sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(host[0], -1.0f);
  expect_success(cudaStreamSynchronize(stream));
  EXPECT_EQ(host[0], 7.0f);
  expect_success(cudaStreamDestroy(stream));
}

/// Who waits for an event waits for the record before it, whatever is recorded later.
TEST(HostChip, AnEventIsRecordedAgainWhileItsFirstRecordIsAwaited) {
  DeviceArray<float> out(std::vector<float>(32, 0.0f)), seen(std::vector<float>(64, 0.0f));
  cudaStream_t first, second;
  cudaEvent_t filled, copied;
  expect_success(cudaStreamCreate(&first));
  expect_success(cudaStreamCreate(&second));
  expect_success(cudaEventCreate(&filled));
  expect_success(cudaEventCreate(&copied));
  for (int turn = 0; turn < 2; ++turn) {
    if (turn > 0) expect_success(cudaStreamWaitEvent(first, copied));
    expect_success(launch(first, 1, 32, 0, fill, out.data(), 7.0f + float(turn)));
    expect_success(cudaEventRecord(filled, first));
    expect_success(cudaStreamWaitEvent(second, filled));
    expect_success(
        cudaMemcpyAsync(seen.data() + 32 * turn, out.data(), 32 * sizeof(float), cudaMemcpyDeviceToDevice, second));
    expect_success(cudaEventRecord(copied, second));
  }
  expect_success(cudaStreamSynchronize(second));
  EXPECT_EQ(seen.values()[5], 7.0f);
  EXPECT_EQ(seen.values()[37], 8.0f);
  expect_success(cudaEventDestroy(filled));
  expect_success(cudaEventDestroy(copied));
  expect_success(cudaStreamDestroy(first));
  expect_success(cudaStreamDestroy(second));
}

TEST(HostChip, EventsOrderStreams) {
  DeviceArray<float> out(std::vector<float>(32, 0.0f));
  cudaStream_t first, second;
  cudaEvent_t filled;
  expect_success(cudaStreamCreate(&first));
  expect_success(cudaStreamCreate(&second));
  expect_success(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  expect_success(launch(first, 1, 32, 0, fill, out.data(), 7.0f));
  expect_success(cudaEventRecord(filled, first));
  expect_success(cudaStreamWaitEvent(second, filled));
  expect_success(launch(second, 1, 32, 0, add_one, out.data()));
  expect_success(cudaStreamSynchronize(second));
  EXPECT_EQ(out.values()[5], 8.0f);
  expect_success(cudaEventDestroy(filled));
  expect_success(cudaStreamDestroy(first));
  expect_success(cudaStreamDestroy(second));
}

TEST(HostChip, ReplaysACapturedGraphWithAForkInIt) {
  DeviceArray<float> one(std::vector<float>(32, 0.0f)), two(std::vector<float>(32, 0.0f));
  cudaStream_t main, side;
  cudaEvent_t fork, join;
  expect_success(cudaStreamCreate(&main));
  expect_success(cudaStreamCreate(&side));
  expect_success(cudaEventCreate(&fork));
  expect_success(cudaEventCreate(&join));
  expect_success(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  expect_success(cudaEventRecord(fork, main));
  expect_success(cudaStreamWaitEvent(side, fork));
  expect_success(launch_dependent(side, 1, 32, 0, add_one, one.data()));
  expect_success(launch(main, 1, 32, 0, add_one, two.data()));
  expect_success(cudaEventRecord(join, side));
  expect_success(cudaStreamWaitEvent(main, join));
  cudaGraph_t graph;
  cudaGraphExec_t step;
  expect_success(cudaStreamEndCapture(main, &graph));
  expect_success(cudaGraphInstantiate(&step, graph, 0));
  expect_success(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; i++) expect_success(cudaGraphLaunch(step, main));
  expect_success(cudaStreamSynchronize(main));
  EXPECT_EQ(one.values()[0], 3.0f);
  EXPECT_EQ(two.values()[31], 3.0f);
  expect_success(cudaGraphExecDestroy(step));
  expect_success(cudaEventDestroy(fork));
  expect_success(cudaEventDestroy(join));
  expect_success(cudaStreamDestroy(main));
  expect_success(cudaStreamDestroy(side));
}

TEST(HostChip, RefusesToSynchroniseWhileCapturing) {
  cudaStream_t stream;
  expect_success(cudaStreamCreate(&stream));
  expect_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaGraph_t graph;
  expect_success(cudaStreamEndCapture(stream, &graph));
  expect_success(cudaGraphDestroy(graph));
  expect_success(cudaStreamDestroy(stream));
}

TEST(HostChip, CountsMemory) {
  const size_t before = host_chip::memory().total();
  host_chip::set_memory_bytes(1 << 20);
  size_t free_bytes, total;
  void *half, *rest;
  expect_success(cudaMalloc(&half, 1 << 19));
  expect_success(cudaMemGetInfo(&free_bytes, &total));
  EXPECT_EQ(free_bytes, size_t(1) << 19);
  EXPECT_EQ(total, size_t(1) << 20);
  EXPECT_EQ(cudaMalloc(&rest, (1 << 19) + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(rest, nullptr);
  expect_success(cudaFree(half));
  EXPECT_EQ(cudaFree(&total), cudaErrorInvalidValue);
  cudaGetLastError();
  host_chip::set_memory_bytes(before);
}

TEST(HostChip, RefusesGeometryThatAGpuRefuses) {
  DeviceArray<float> out(32);
  EXPECT_EQ(launch(nullptr, 1, 1025, 0, fill, out.data(), 0.0f), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(nullptr, 0, 32, 0, fill, out.data(), 0.0f), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(nullptr, dim3(1, 65536), 32, 0, fill, out.data(), 0.0f), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(nullptr, 1, 32, 60000, read_dynamic_shared, out.data()), cudaErrorInvalidConfiguration);
  expect_success(cudaFuncSetAttribute(read_dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
  EXPECT_EQ(launch(nullptr, 1, 32, 60000, read_dynamic_shared, out.data()), cudaSuccess);
  expect_success(cudaDeviceSynchronize());
  cudaGetLastError();
}

}  // namespace
}  // namespace lane::test
