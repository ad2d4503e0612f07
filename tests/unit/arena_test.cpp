#include "lane/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  // No launch touches a1 and b2, but all of x, a1, a2, b1 and b2 may be live before the join.
  EXPECT_EQ(a.live_bytes, 5u * 256);
  EXPECT_EQ(a.bytes, a.live_bytes);
}

/// Whether every launch that touches buffer `a` has finished before any that touches `b` starts.
bool ends_before(const Schedule& s, const LaunchOrder& order, int a, int b) {
  auto uses = [&](size_t launch, int buffer) {
    return std::ranges::any_of(touches(s.launches[launch]), [&](const Touch& t) { return t.index == buffer; });
  };
  for (size_t i = 0; i < s.launches.size(); ++i) {
    for (size_t j = 0; j < s.launches.size(); ++j) {
      if (uses(i, a) && uses(j, b) && !order.before(int(i), int(j))) return false;
    }
  }
  return true;
}

/// Over all sets of buffers any two of which may be live at once, the most bytes: by trying every set.
uint64_t heaviest_live_set(const Schedule& s, const Branches& branches) {
  const LaunchOrder order(branches);
  const int n = int(s.buffers.size());
  std::vector<uint32_t> apart(size_t(n), 0);  // of each buffer: the others, as bits, that are never live with it
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b && (ends_before(s, order, a, b) || ends_before(s, order, b, a))) apart[size_t(a)] |= 1u << b;
    }
  }
  uint64_t most = 0;
  for (uint32_t set = 0; set < 1u << n; ++set) {
    uint64_t bytes = 0;
    bool together = true;
    for (int b = 0; b < n; ++b) {
      if ((set >> b & 1) == 0) continue;
      bytes += (s.buffers[size_t(b)].bytes + 255) / 256 * 256;
      together &= (apart[size_t(b)] & set) == 0;
    }
    if (together) most = std::max(most, bytes);
  }
  return most;
}

TEST(Arena, LiveBytesAreTheHeaviestSetThatMayBeLiveAtOnce) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    const Schedule s = test::random_schedule(12, random);
    for (const Branches& b : {branch(s, Options{}, *find_chip("sm_90")), one_stream(s)}) {
      EXPECT_EQ(allocate(s, b).live_bytes, heaviest_live_set(s, b)) << "round " << round;
    }
  }
}

TEST(Arena, StaysWithinATenthOfWhatMayBeLiveAtOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const Schedule s = round % 2 ? test::decoder_schedule(12, random) : test::random_schedule(100, random);
    for (const Branches& b : {branch(s, Options{}, *find_chip("sm_90")), one_stream(s)}) {
      const Arena a = allocate(s, b);
      verify(a, s, b);
      EXPECT_LE(double(a.bytes), 1.1 * double(a.live_bytes)) << "round " << round << ", streams " << b.streams;
    }
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
  Arena impossible = good;
  impossible.live_bytes = good.bytes + 256;
  EXPECT_THROW(verify(impossible, s, b), InternalError);
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
