// Chips, a row each: what planning needs to know of one. docs/chips.md says where the numbers come from.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lane {

struct Chip {
  std::string_view name;  // "sm_90", "host"
  std::string_view
      gencode;     // nvcc's -gencode argument, "arch=compute_90a,code=sm_90a"; empty: the C++ compiler builds it
  int capability;  // 90; 0 for host
  int multiprocessors;
  int shared_bytes;  // most dynamic shared memory of one block
  int64_t l2_bytes;
  int64_t memory_bytes;           // of a common card with this chip
  int64_t bandwidth;              // bytes a second
  bool bulk_copy = false;         // cp.async.bulk and mbarriers
  bool dependent_launch = false;  // programmatic dependent launch
  bool int8_mma = false;          // mma.sync on int8
  bool bf16_mma = false;          // mma.m16n8k16 on bf16 and f16, asynchronous copies of 16 bytes
  bool wgmma = false;             // warpgroup mma
};
std::span<const Chip> chips();
const Chip* find_chip(std::string_view name);

}  // namespace lane
