#include "lane/residence.h"

#include <gtest/gtest.h>

#include "lane/error.h"
#include "unit/schedules.h"

namespace lane {
namespace {

Placement placement(const char* name, DeviceLayout layout, uint64_t bytes) {
  Placement p;
  p.name = name;
  p.layout = layout;
  p.device_bytes = bytes;
  return p;
}

Weights three() {
  Weights w;
  w.placements = {placement("token_embd", DeviceLayout::AsStored, 5000),
                  placement("attn_norm_0", DeviceLayout::Floats, 100),
                  placement("attn_q_0", DeviceLayout::AsStored, 600)};
  return w;
}

Schedule small_schedule() {
  Schedule s;
  s.state_stride = 512;
  s.vocabulary = 100;
  return s;
}

Residence reside_on(const char* chip, int64_t mem_bytes) {
  const Schedule s = small_schedule();
  Arena a;
  a.bytes = 1024;
  Options o;
  o.mem_bytes = mem_bytes;
  return reside({&s}, {&a}, three(), o, *find_chip(chip));
}

TEST(Residence, AddsUpWhatALaneNeeds) {
  const Residence r = reside_on("host", 1 << 20);
  verify(r, three());
  EXPECT_EQ(r.weight_offset, (std::vector<uint64_t>{256, 0, 5376}));
  EXPECT_EQ(r.weight_bytes, 256u + 5120u + 768u);
  EXPECT_EQ(r.fixed_weight_bytes, 256u);
  EXPECT_EQ(r.state_bytes, 512u);
  EXPECT_EQ(r.logits_bytes, 512u);
  EXPECT_EQ(r.io_bytes, 1536u);
  EXPECT_EQ(r.left, 0u);
  EXPECT_EQ(r.needed(), 6144u + 512 + 1024 + 512 + 1536);
}

TEST(Residence, EverySequenceOfABatchHasItsState) {
  const Schedule decode = small_schedule();
  Schedule batch = small_schedule();
  batch.sequences = 3;
  batch.logit_rows = 3;
  const Arena a;
  const Residence r = reside({&decode, &batch}, {&a, &a}, three(), Options{}, *find_chip("host"));
  EXPECT_EQ(r.state_bytes, 3u * 512u);
  EXPECT_EQ(r.logits_bytes, 1280u);
}

TEST(Residence, MatricesLeaveWhereMemoryIsShort) {
  const Residence r = reside_on("host", 9000);
  verify(r, three());
  ASSERT_EQ(r.leaving.size(), 2u);
  EXPECT_EQ(r.leaving[0].matrices, std::vector<int>{2});
  EXPECT_EQ(r.leaving[1].matrices, std::vector<int>{0});
  EXPECT_EQ(r.left, 1u);
}

const Kernel kProduct{"product", "ops/product.cuh", ""};
const Kernel kLookup{.name = "lookup", .file = "ops/lookup.cuh", .parameters = "", .gathers = true};

Launch reads(const Kernel& kernel, const std::vector<int>& placements) {
  Launch launch;
  launch.kernel = &kernel;
  for (const int p : placements) launch.args.emplace_back(WeightArg{p});
  return launch;
}

/// An embedding of 3,000 bytes (0), and two layers of a product of 1,024 bytes (1 and 4) and two at once of 512 (2, 3;
/// 5, 6); an output (7) of `output_bytes`.
struct Model {
  Weights weights;
  Schedule schedule = small_schedule();
  Residence in(int64_t mem_bytes) const {
    const Arena a;
    Options o;
    o.mem_bytes = mem_bytes;
    return reside({&schedule}, {&a}, weights, o, *find_chip("host"));
  }
};

Model two_layers(uint64_t output_bytes) {
  Model m;
  for (const uint64_t bytes : {uint64_t{3000}, uint64_t{1024}, uint64_t{512}, uint64_t{512}, uint64_t{1024},
                               uint64_t{512}, uint64_t{512}, output_bytes})
    m.weights.placements.push_back(placement("m", DeviceLayout::AsStored, bytes));
  m.schedule.launches = {reads(kLookup, {0}),  reads(kProduct, {1}),    reads(kProduct, {2, 3}),
                         reads(kProduct, {4}), reads(kProduct, {5, 6}), reads(kProduct, {7})};
  return m;
}

TEST(Residence, WhatALaunchReadsLeavesTogether) {
  const Residence r = two_layers(1536).in(1 << 20);
  std::vector<std::vector<int>> order;
  for (size_t i = 0; i < 6; ++i) order.push_back(r.leaving[i].matrices);
  EXPECT_EQ(order, (std::vector<std::vector<int>>{{0}, {1}, {4}, {2, 3}, {5, 6}, {7}}));
}

TEST(Residence, TheEmbeddingLeavesFirstAndIsReadInPlace) {
  const Residence r = two_layers(1536).in(1 << 20);
  EXPECT_EQ(r.leaving[0].away, Away::Read);
  EXPECT_EQ(r.leaving[0].buffer_bytes, 0u);
  EXPECT_EQ(r.leaving[0].weight_bytes, r.weight_bytes - 3072);
}

TEST(Residence, AMatrixReadWholeAnywhereIsCopied) {
  Model tied = two_layers(1536);
  tied.schedule.launches.push_back(reads(kProduct, {0}));
  const Residence r = tied.in(1 << 20);
  EXPECT_EQ(r.leaving[5].matrices, std::vector<int>{0});
  EXPECT_EQ(r.leaving[5].away, Away::Copied);
}

TEST(Residence, TwoBuffersHoldTheLargestThatIsCopied) {
  const Residence r = two_layers(1536).in(1 << 20);
  EXPECT_EQ(r.leaving[1].buffer_bytes, 1024u);
  EXPECT_EQ(r.leaving[4].buffer_bytes, 1024u);
  EXPECT_EQ(r.leaving[5].buffer_bytes, 1536u);
  EXPECT_EQ(r.leaving[5].weight_bytes, 2 * 1536u);  // nothing stays
}

TEST(Residence, WhatIsMuchLargerThanTheRestIsReadInPlace) {
  const Residence r = two_layers(64 << 10).in(1 << 20);
  EXPECT_EQ(r.leaving[5].matrices, std::vector<int>{7});
  EXPECT_EQ(r.leaving[5].away, Away::Read);
  EXPECT_EQ(r.leaving[5].buffer_bytes, 1024u);
}

TEST(Residence, AtLastTheBuffersShrink) {
  const Residence r = two_layers(1536).in(1 << 20);
  ASSERT_EQ(r.leaving.size(), 11u);
  EXPECT_EQ(r.leaving[6].matrices, std::vector<int>{7});
  EXPECT_EQ(r.leaving[6].weight_bytes, 2u * 1024);
  for (size_t i = 6; i < 11; ++i) EXPECT_EQ(r.leaving[i].away, Away::Read);
  EXPECT_EQ(r.leaving.back().weight_bytes, 0u);
}

TEST(Residence, EqualSetsLeaveFarApart) {
  Model m;
  m.schedule.launches.clear();
  for (int p = 0; p < 8; ++p) {
    m.weights.placements.push_back(placement("m", DeviceLayout::AsStored, 512));
    m.schedule.launches.push_back(reads(kProduct, {p}));
  }
  const Residence r = m.in(1 << 20);
  for (size_t i = 1; i < 8; ++i) {
    EXPECT_GT(std::abs(r.leaving[i].matrices[0] - r.leaving[i - 1].matrices[0]), 1) << i;
  }
}

TEST(Residence, AsFewLeaveAsFit) {
  const Model m = two_layers(1536);
  const Residence all = m.in(1 << 20);
  for (size_t left = 0; left <= all.leaving.size(); ++left) {
    const Residence r = m.in(int64_t(all.needed_with(left)));
    verify(r, m.weights);
    EXPECT_LE(r.needed(), all.needed_with(left));
    for (size_t fewer = 0; fewer < r.left; ++fewer) EXPECT_GT(all.needed_with(fewer), all.needed_with(left));
  }
}

TEST(Residence, RefusesWithBothNumbers) {
  const Model m = two_layers(1536);
  const Residence all = m.in(1 << 20);
  uint64_t least = all.needed();
  for (size_t left = 0; left <= all.leaving.size(); ++left) least = std::min(least, all.needed_with(left));
  EXPECT_NO_THROW(m.in(int64_t(least)));
  try {
    m.in(int64_t(least) - 1);
    FAIL() << "accepted";
  } catch (const MemoryError& e) {
    EXPECT_EQ(e.needed, least);
    EXPECT_EQ(e.budget, least - 1);
    EXPECT_EQ(e.exit_code(), ExitCode::Environment);
    for (const char* item : {"weights 0", "copy buffers 0", "carried state 512", "arena 0", "logits 512"})
      EXPECT_NE(std::string(e.what()).find(item), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
  }
}

TEST(Residence, RefusesSequencesWhoseStateAloneIsTooMuch) {
  Schedule step;
  step.state_stride = 512;
  Options options;
  options.mem_bytes = 5120;
  const Chip& chip = *find_chip("host");
  EXPECT_NO_THROW(check_state_bytes(step, 10, options, chip));
  try {
    check_state_bytes(step, 11, options, chip);
    FAIL() << "accepted";
  } catch (const MemoryError& e) {
    EXPECT_EQ(e.needed, 5632u);
    EXPECT_EQ(e.budget, 5120u);
    EXPECT_NE(std::string(e.what()).find("carried state 5632"), std::string::npos) << e.what();
  }
}

TEST(Residence, AGpuKeepsAReserve) {
  EXPECT_EQ(reside_on("sm_90", 9728 + int64_t(kContextReserve)).left, 0u);
  EXPECT_GT(reside_on("sm_90", 9727 + int64_t(kContextReserve)).left, 0u);
}

TEST(Residence, DamagedProductsFail) {
  const Residence good = reside_on("host", 1 << 20);
  Residence overlapping = good;
  overlapping.weight_offset[1] = 256;
  EXPECT_THROW(verify(overlapping, three()), InternalError);
  Residence small = good;
  small.weight_bytes = 5376;
  EXPECT_THROW(verify(small, three()), InternalError);
  Residence twice = good;
  twice.leaving[0] = twice.leaving[1];
  EXPECT_THROW(verify(twice, three()), InternalError);
  Residence crowded = good;
  crowded.leaving[1].weight_bytes -= 256;
  EXPECT_THROW(verify(crowded, three()), InternalError);
  Residence over = good;
  over.budget = over.needed() - 1;
  EXPECT_THROW(verify(over, three()), InternalError);
  Residence shorter = good;
  shorter.weight_offset.pop_back();
  EXPECT_THROW(verify(shorter, three()), InternalError);
}

TEST(Residence, Text) {
  EXPECT_EQ(to_text(reside_on("host", 9000), three()),
            "weights 5376 (of them fixed 256)\nin host memory 0 copied ahead, 768 read there\ncopy buffers 2 x 0\n"
            "carried state 512\narena 1024\nlogits 512\ninputs 1536\nneeded 8960\nbudget 9000\nread by a step 0\n"
            "         256         5000 token_embd\n           0          100 attn_norm_0\n"
            "        5376          600 attn_q_0\n"
            "leaving, in order; with each away, bytes needed\n"
            "        8960 read there, away attn_q_0\n        3840 read there token_embd\n");
}

}  // namespace
}  // namespace lane
