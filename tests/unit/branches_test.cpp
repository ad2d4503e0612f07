#include "lane/branches.h"

#include <gtest/gtest.h>

#include "lane/error.h"
#include "unit/schedules.h"

namespace lane {
namespace {

const Chip& gpu() { return *find_chip("sm_90"); }

TEST(Branches, ProjectionsOfALayerRunSideBySide) {
  std::mt19937 random(1);
  const Schedule s = test::decoder_schedule(2, random);
  const Branches b = branch(s, Options{}, gpu());
  verify(b, s);
  const LaunchOrder order(b);
  EXPECT_EQ(b.streams, 3);
  EXPECT_FALSE(order.before(2, 3));  // q and k of the first layer
  EXPECT_FALSE(order.before(3, 4));
  EXPECT_TRUE(order.before(1, 4));  // the norm, then v
  EXPECT_TRUE(order.before(4, 5));  // v, then what reads it
}

TEST(Branches, OneStreamWhereNotAskedForAndOnTheHost) {
  std::mt19937 random(1);
  const Schedule s = test::decoder_schedule(2, random);
  Options off;
  off.branches = false;
  EXPECT_EQ(branch(s, off, gpu()).streams, 1);
  EXPECT_EQ(branch(s, Options{}, *find_chip("host")).streams, 1);
  verify(branch(s, off, gpu()), s);
}

TEST(Branches, RandomSchedulesAreOrderedWhereTheyMustBe) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const Schedule s = test::random_schedule(60, random);
    verify(branch(s, Options{}, gpu()), s);
  }
}

TEST(Branches, TheAdvanceWaitsForEveryReaderOfThePosition) {
  Schedule s;
  for (int i = 0; i < 3; ++i) {
    s.buffers.push_back({"b", 4});
    s.launches.push_back(test::touch_buffers({}, {i}));
    s.launches.back().args.emplace_back(IoArg{Io::Positions, Access::Read});
  }
  s.launches.push_back(test::touch_buffers({}, {}));
  s.launches.back().args.emplace_back(IoArg{Io::Positions, Access::ReadWrite});
  const Branches b = branch(s, Options{}, gpu());
  verify(b, s);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(LaunchOrder(b).before(i, 3));
}

TEST(Branches, DamagedProductsFail) {
  std::mt19937 random(1);
  const Schedule s = test::decoder_schedule(1, random);
  const Branches good = branch(s, Options{}, gpu());
  Branches lost_edge = good;
  for (std::vector<int>& a : lost_edge.after) a.clear();
  EXPECT_THROW(verify(lost_edge, s), InternalError);
  Branches wrong_stream = good;
  wrong_stream.stream[1] = wrong_stream.streams;
  EXPECT_THROW(verify(wrong_stream, s), InternalError);
  Branches later = good;
  later.after[1] = {3};
  EXPECT_THROW(verify(later, s), InternalError);
  Branches shorter = good;
  shorter.stream.pop_back();
  EXPECT_THROW(verify(shorter, s), InternalError);
}

TEST(Branches, Text) {
  std::mt19937 random(1);
  const Schedule s = test::decoder_schedule(1, random);
  EXPECT_EQ(
      to_text(branch(s, Options{}, gpu()), s),
      "streams 3\n   0   0 touch\n   1   0 touch\n   2   0 touch\n   3   1 touch after 1\n   4   2 touch after 1\n"
      "   5   2 touch after 2, 3\n   6   2 touch\n");
}

}  // namespace
}  // namespace lane
