// What bounds loading on this machine, a name and a number a line: the seconds that a bare CUDA context takes, the
// seconds that pinning host memory takes, the host link's bytes a second and, for a FILE, the bytes a second at which
// threads read it from a warm page cache into pinned memory.
//
//   time_loading [FILE [THREADS]]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/device.cuh"

namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "time_loading: %s\n", cudaGetErrorString(error));
  exit(1);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_seconds(int repeats, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(seconds_of(work));
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[size_t(repeats / 2)];
}

/// All of `file`, pieces of `to_bytes` / `threads` each, whichever thread is free.
void read_all(int file, int64_t file_bytes, uint8_t* to, size_t to_bytes, int threads) {
  const int64_t piece = int64_t(to_bytes) / threads;
  std::vector<std::thread> readers;
  for (int t = 0; t < threads; ++t) {
    readers.emplace_back([=] {
      for (int64_t at = t * piece; at < file_bytes; at += threads * piece) {
        if (pread(file, to + t * piece, size_t(std::min(piece, file_bytes - at)), at) <= 0) exit(1);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t kBytes = size_t{128} << 20;
  constexpr int kRepeats = 5;
  uint8_t *device = nullptr, *pinned = nullptr;
  printf("context_seconds %.4f\n", seconds_of([] { check(cudaFree(nullptr)); }));
  printf("pin_128_MiB_seconds %.4f\n", seconds_of([&] { check(cudaMallocHost(&pinned, kBytes)); }));
  check(cudaMalloc(&device, kBytes));
  memset(pinned, 1, kBytes);
  const double copy = median_seconds(kRepeats + 1, [&] {
    check(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, nullptr));
    check(cudaDeviceSynchronize());
  });
  printf("link_bytes_per_second %.4g\n", kBytes / copy);
  if (argc > 1) {
    const int file = open(argv[1], O_RDONLY);
    const int64_t bytes = file < 0 ? -1 : int64_t(lseek(file, 0, SEEK_END));
    const int threads = argc > 2 ? std::max(1, atoi(argv[2])) : int(std::thread::hardware_concurrency());
    if (bytes <= 0) return perror(argv[1]), 1;
    const double read = median_seconds(kRepeats, [&] { read_all(file, bytes, pinned, kBytes, threads); });
    printf("read_bytes_per_second %.4g\n", double(bytes) / read);
    close(file);
  }
  check(cudaFreeHost(pinned));
  check(cudaFree(device));
}
