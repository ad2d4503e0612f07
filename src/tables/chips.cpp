#include "lane/chip.h"

#include <array>

namespace lane {
namespace {

constexpr int64_t kGB = 1'000'000'000;
constexpr int kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;

// Each row is of one common card, named beside it; docs/chips.md names the sources. Memory and bandwidth are the data
// sheet's, in decimal units.
constexpr std::array kChips = {
    Chip{.name = "sm_75",  // T4
         .gencode = "arch=compute_75,code=sm_75",
         .capability = 75,
         .multiprocessors = 40,
         .shared_bytes = 64 * kKiB,
         .l2_bytes = 4 * kMiB,
         .memory_bytes = 16 * kGB,
         .bandwidth = 320 * kGB,
         .int8_mma = true},
    Chip{.name = "sm_80",  // A100 80GB SXM
         .gencode = "arch=compute_80,code=sm_80",
         .capability = 80,
         .multiprocessors = 108,
         .shared_bytes = 163 * kKiB,
         .l2_bytes = 40 * kMiB,
         .memory_bytes = 80 * kGB,
         .bandwidth = 2039 * kGB,
         .int8_mma = true,
         .bf16_mma = true},
    Chip{.name = "sm_86",  // RTX 3090
         .gencode = "arch=compute_86,code=sm_86",
         .capability = 86,
         .multiprocessors = 82,
         .shared_bytes = 99 * kKiB,
         .l2_bytes = 6 * kMiB,
         .memory_bytes = 24 * kGB,
         .bandwidth = 936 * kGB,
         .int8_mma = true,
         .bf16_mma = true},
    Chip{.name = "sm_89",  // RTX 4090
         .gencode = "arch=compute_89,code=sm_89",
         .capability = 89,
         .multiprocessors = 128,
         .shared_bytes = 99 * kKiB,
         .l2_bytes = 72 * kMiB,
         .memory_bytes = 24 * kGB,
         .bandwidth = 1008 * kGB,
         .int8_mma = true,
         .bf16_mma = true},
    Chip{.name = "sm_90",  // H200 SXM
         .gencode = "arch=compute_90a,code=sm_90a",
         .capability = 90,
         .multiprocessors = 132,
         .shared_bytes = 227 * kKiB,
         .l2_bytes = 50 * kMiB,
         .memory_bytes = 141 * kGB,
         .bandwidth = 4800 * kGB,
         .bulk_copy = true,
         .dependent_launch = true,
         .int8_mma = true,
         .bf16_mma = true,
         .wgmma = true},
    Chip{.name = "sm_100",  // B200
         .gencode = "arch=compute_100,code=sm_100",
         .capability = 100,
         .multiprocessors = 148,
         .shared_bytes = 227 * kKiB,
         .l2_bytes = 126 * kMiB,
         .memory_bytes = 180 * kGB,
         .bandwidth = 8000 * kGB,
         .bulk_copy = true,
         .dependent_launch = true,
         .int8_mma = true,
         .bf16_mma = true},
    Chip{.name = "sm_120",  // RTX 5090
         .gencode = "arch=compute_120,code=sm_120",
         .capability = 120,
         .multiprocessors = 170,
         .shared_bytes = 99 * kKiB,
         .l2_bytes = 96 * kMiB,
         .memory_bytes = 32 * kGB,
         .bandwidth = 1792 * kGB,
         .bulk_copy = true,
         .dependent_launch = true,
         .int8_mma = true,
         .bf16_mma = true},
    Chip{.name = "sm_121",  // GB10
         .gencode = "arch=compute_121,code=sm_121",
         .capability = 121,
         .multiprocessors = 48,
         .shared_bytes = 99 * kKiB,
         .l2_bytes = 24 * kMiB,
         .memory_bytes = 128 * kGB,
         .bandwidth = 273 * kGB,
         .bulk_copy = true,
         .dependent_launch = true,
         .int8_mma = true,
         .bf16_mma = true},
    // The C++ compiler builds the program: "multiprocessors" stand for worker threads, memory for what a small machine
    // has, and a block has as much shared memory as any chip gives.
    Chip{.name = "host",
         .gencode = "",
         .capability = 0,
         .multiprocessors = 4,
         .shared_bytes = 227 * kKiB,
         .l2_bytes = 1 * kMiB,
         .memory_bytes = 16 * kGB,
         .bandwidth = 20 * kGB},
};

}  // namespace

std::span<const Chip> chips() { return kChips; }

const Chip* find_chip(std::string_view name) {
  for (const Chip& chip : kChips)
    if (chip.name == name) return &chip;
  return nullptr;
}

}  // namespace lane
