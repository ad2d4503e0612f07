#include "lane/arena.h"

#include <gtest/gtest.h>

#include "lane/error.h"
#include "unit/schedules.h"

namespace lane {
namespace {

Branches one_stream(const Schedule& s) {
  Options off;
  off.branches = false;
  return branch(s, off, *find_chip("sm_90"));
}

/// a, then b from a, then c from b: a and c share their place.
Schedule chain() {
  Schedule s;
  s.buffers = {{"a", 1000}, {"b", 300}, {"c", 1000}};
  s.launches = {test::touch_buffers({}, {0}), test::touch_buffers({0}, {1}), test::touch_buffers({1}, {2})};
  return s;
}

TEST(Arena, BuffersOfDisjointLifetimesShareTheirPlace) {
  const Schedule s = chain();
  const Branches b = one_stream(s);
  const Arena a = allocate(s, b);
  verify(a, s, b);
  EXPECT_EQ(a.offset[0], a.offset[2]);
  EXPECT_EQ(a.bytes, 1024u + 512u);
  EXPECT_EQ(a.live_bytes, a.bytes);
}

// note [the head of a chunk's rows]
TEST(Arena, WhatAHeadReadsStaysWhole) {
  Schedule s = chain();
  const Arena without = allocate(s, one_stream(s));
  s.kind = FormKind::Prefill;
  s.rows_per_sequence = 2;
  std::get<BufferArg>(s.launches[1].args[0]).byte_offset = 500;
  s.launches[2].args.push_back(LogitsArg{});
  const Branches b = one_stream(s);
  const Arena a = allocate(s, b);
  verify(a, s, b);
  EXPECT_NE(a.offset[0], a.offset[2]);
  EXPECT_THROW(verify(without, s, b), InternalError);
}

TEST(Arena, ABufferReadAndWrittenByOneLaunchDoesNotOverlapItsSource) {
  Schedule s;
  s.buffers = {{"a", 256}, {"b", 256}};
  s.launches = {test::touch_buffers({}, {0}), test::touch_buffers({0}, {1})};
  const Arena a = allocate(s, one_stream(s));
  EXPECT_NE(a.offset[0], a.offset[1]);
}

TEST(Arena, BuffersOfTwoBranchesDoNotOverlap) {
  Schedule s;  // two chains from one source, joined: on two streams, a1 and b2 may be live together
  s.buffers = {{"x", 256}, {"a1", 256}, {"a2", 256}, {"b1", 256}, {"b2", 256}, {"y", 256}};
  s.launches = {test::touch_buffers({}, {0}),  test::touch_buffers({0}, {1}), test::touch_buffers({1}, {2}),
                test::touch_buffers({0}, {3}), test::touch_buffers({3}, {4}), test::touch_buffers({2, 4}, {5})};
  const Branches b = branch(s, Options{}, *find_chip("sm_90"));
  ASSERT_EQ(b.streams, 2);
  const Arena a = allocate(s, b);
  verify(a, s, b);
  EXPECT_NE(a.offset[1], a.offset[4]);
}

TEST(Arena, StaysWithinATenthOfWhatIsLiveAtOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const Schedule s = round % 2 ? test::decoder_schedule(12, random) : test::random_schedule(120, random);
    const Branches b = one_stream(s);
    const Arena a = allocate(s, b);
    verify(a, s, b);
    EXPECT_LE(double(a.bytes), 1.1 * double(a.live_bytes)) << "round " << round;
  }
}

TEST(Arena, RandomSchedulesOnBranchesVerify) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const Schedule s = test::random_schedule(80, random);
    const Branches b = branch(s, Options{}, *find_chip("sm_90"));
    verify(allocate(s, b), s, b);
  }
}

TEST(Arena, DamagedProductsFail) {
  const Schedule s = chain();
  const Branches b = one_stream(s);
  const Arena good = allocate(s, b);
  Arena overlapping = good;
  overlapping.offset[1] = overlapping.offset[0];
  EXPECT_THROW(verify(overlapping, s, b), InternalError);
  Arena unaligned = good;
  unaligned.offset[1] += 4;
  EXPECT_THROW(verify(unaligned, s, b), InternalError);
  Arena small = good;
  small.bytes -= 256;
  EXPECT_THROW(verify(small, s, b), InternalError);
  Arena shorter = good;
  shorter.offset.pop_back();
  EXPECT_THROW(verify(shorter, s, b), InternalError);
}

TEST(Arena, Text) {
  const Schedule s = chain();
  EXPECT_EQ(to_text(allocate(s, one_stream(s)), s),
            "bytes 1536\nlive bytes 1536\n         0       1000 a launches 0 to 1\n"
            "      1024        300 b launches 1 to 2\n         0       1000 c launches 2 to 2\n");
}

TEST(Arena, AStepOfNothingTakesNothing) {
  const Schedule s;
  const Arena a = allocate(s, one_stream(s));
  verify(a, s, one_stream(s));
  EXPECT_EQ(a.bytes, 0u);
}

}  // namespace
}  // namespace lane
