// Schedules made by hand or at random, for the passes after planning.
#pragma once
#include <fmt/format.h>

#include <random>
#include <string>

#include "lane/plan.h"

namespace lane::test {

/// A launch that reads the buffers `reads` and writes `writes`.
inline Launch touch_buffers(const std::vector<int>& reads, const std::vector<int>& writes) {
  static const Kernel kernel{"touch", "ops/touch.cuh", ""};
  Launch launch;
  launch.kernel = &kernel;
  for (int b : reads) launch.args.emplace_back(BufferArg{b, 0, Access::Read});
  for (int b : writes) launch.args.emplace_back(BufferArg{b, 0, Access::Write});
  return launch;
}

/// `layers` times: a norm; q, k and v beside each other; a join; a residual sum. As a decoder's step is shaped.
inline Schedule decoder_schedule(int layers, std::mt19937& random) {
  Schedule s;
  std::uniform_int_distribution<uint64_t> bytes(1, 20000);
  auto make = [&](const std::string& name) {
    s.buffers.push_back({name, bytes(random)});
    return int(s.buffers.size()) - 1;
  };
  int x = make("x");
  s.launches.push_back(touch_buffers({}, {x}));
  for (int l = 0; l < layers; ++l) {
    const int norm = make(fmt::format("norm_{}", l)), q = make(fmt::format("q_{}", l)),
              k = make(fmt::format("k_{}", l)), v = make(fmt::format("v_{}", l)), a = make(fmt::format("a_{}", l));
    s.launches.push_back(touch_buffers({x}, {norm}));
    for (int p : {q, k, v}) s.launches.push_back(touch_buffers({norm}, {p}));
    s.launches.push_back(touch_buffers({q, k, v}, {a}));
    const int next = make(fmt::format("x_{}", l));
    s.launches.push_back(touch_buffers({x, a}, {next}));
    x = next;
  }
  return s;
}

/// Each launch writes a buffer of its own and reads up to three earlier ones.
inline Schedule random_schedule(int launches, std::mt19937& random) {
  Schedule s;
  std::uniform_int_distribution<uint64_t> bytes(1, 50000);
  for (int i = 0; i < launches; ++i) {
    s.buffers.push_back({fmt::format("b{}", i), bytes(random)});
    std::vector<int> reads;
    for (int r = 0; r < 3 && i > 0; ++r) reads.push_back(i - 1 - int(random() % uint32_t(std::min(i, 8))));
    s.launches.push_back(touch_buffers(reads, {i}));
  }
  return s;
}

}  // namespace lane::test
