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
  EXPECT_EQ(r.weight_offset, (std::vector<uint64_t>{0, 5120, 5376}));
  EXPECT_EQ(r.weight_bytes, 5376u + 768u);
  EXPECT_EQ(r.fixed_weight_bytes, 256u);
  EXPECT_EQ(r.state_bytes, 512u);
  EXPECT_EQ(r.logits_bytes, 512u);
  EXPECT_EQ(r.io_bytes, 1024u);
  EXPECT_EQ(r.needed(), 6144u + 512 + 1024 + 512 + 1024);
}

TEST(Residence, LargestMatricesLeaveFirst) { EXPECT_EQ(reside_on("host", 1 << 20).leaving, (std::vector<int>{0, 2})); }

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

TEST(Residence, RefusesWithBothNumbers) {
  try {
    reside_on("host", 9000);
    FAIL() << "accepted";
  } catch (const MemoryError& e) {
    EXPECT_EQ(e.needed, 9216u);
    EXPECT_EQ(e.budget, 9000u);
    EXPECT_EQ(e.exit_code(), ExitCode::Environment);
    EXPECT_NE(std::string(e.what()).find("carried state 512"), std::string::npos);
  }
  EXPECT_NO_THROW(reside_on("host", 9216));
}

TEST(Residence, AGpuKeepsAReserve) {
  EXPECT_NO_THROW(reside_on("sm_90", 9216 + int64_t(kContextReserve)));
  EXPECT_THROW(reside_on("sm_90", 9215 + int64_t(kContextReserve)), MemoryError);
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
  twice.leaving = {0, 0};
  EXPECT_THROW(verify(twice, three()), InternalError);
  Residence shorter = good;
  shorter.weight_offset.pop_back();
  EXPECT_THROW(verify(shorter, three()), InternalError);
}

TEST(Residence, Text) {
  EXPECT_EQ(to_text(reside_on("host", 1 << 20), three()),
            "weights 6144 (of them fixed 256)\ncarried state 512\narena 1024\nlogits 512\ninputs 1024\nneeded 9216\n"
            "           0         5000 token_embd\n        5120          100 attn_norm_0\n"
            "        5376          600 attn_q_0\nleaving token_embd attn_q_0\n");
}

}  // namespace
}  // namespace lane
