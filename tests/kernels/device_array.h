// Arrays in the device's memory, exactly as large as asked for: on the host chip under ASan, and on a GPU under
// compute-sanitizer, a kernel that leaves them is caught.
#pragma once
#include <stdexcept>
#include <vector>

#include "base/launch.cuh"

namespace lane::test {

inline void expect_success(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

/// Launches a kernel dependently, with as much dynamic shared memory as it asks for, and waits for its end.
template <class Kernel, class... Arguments>
void run_kernel(Kernel kernel, dim3 grid, int threads, int shared_bytes, Arguments... arguments) {
  expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  expect_success(LANE_NAMESPACE::launch_dependent(nullptr, grid, dim3(unsigned(threads)), size_t(shared_bytes), kernel,
                                                  arguments...));
  expect_success(cudaDeviceSynchronize());
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    expect_success(cudaMalloc(&data_, count * sizeof(T)));
    expect_success(cudaMemset(data_, 0xff, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    expect_success(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    expect_success(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

}  // namespace lane::test
