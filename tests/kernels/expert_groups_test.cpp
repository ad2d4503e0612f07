// Choices by expert: a stable sort, and where each expert's run begins.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/device_array.h"
#include "kernels/kernel_registry.h"

namespace lane::test {
namespace {

struct Groups {
  std::vector<int> order, expert, first;
};

Groups groups_on_device(const std::vector<int>& ids, int experts, int room) {
  const DeviceArray<int> chosen(ids), order(ids.size()), expert(static_cast<size_t>(room)),
      first(static_cast<size_t>(room) + 1);
  const KernelValue values[] = {
      {order.data()},     {expert.data()}, {first.data()}, {chosen.data()}, {nullptr, int64_t(ids.size())},
      {nullptr, experts}, {nullptr, room}};
  registered_kernel("group_choices").launch({2, 1, 1}, {96, 1, 1}, uint32_t(experts) * 4, values);
  return {order.values(), expert.values(), first.values()};
}

void expect_groups(const std::vector<int>& ids, int experts) {
  const int room = std::min(int(ids.size()), experts);
  const Groups groups = groups_on_device(ids, experts, room);
  std::vector<int> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ids[size_t(a)] < ids[size_t(b)]; });
  EXPECT_EQ(groups.order, order);
  int at = 0;
  for (int g = 0; g < room; g++) {
    ASSERT_EQ(groups.first[size_t(g)], at) << "group " << g;
    if (at == int(ids.size())) continue;  // there are no more
    EXPECT_EQ(groups.expert[size_t(g)], ids[size_t(order[size_t(at)])]) << "group " << g;
    while (at < int(ids.size()) && ids[size_t(order[size_t(at)])] == groups.expert[size_t(g)]) at++;
  }
  EXPECT_EQ(at, int(ids.size()));
  EXPECT_EQ(groups.first[size_t(room)], at);
}

TEST(ExpertGroups, AreChoicesSortedByExpert) {
  std::mt19937 random(11);
  for (const int experts : {1, 2, 31, 128, 300})
    for (const int choices : {1, 2, 8, 33, 500}) {
      std::vector<int> ids(static_cast<size_t>(choices));
      for (int& id : ids) id = int(random() % unsigned(experts));
      SCOPED_TRACE(testing::Message() << choices << " choices of " << experts);
      ASSERT_NO_FATAL_FAILURE(expect_groups(ids, experts));
    }
}

TEST(ExpertGroups, AreOneWhereAllTokensChooseAlike) {
  expect_groups(std::vector<int>(70, 5), 6);
  expect_groups({3, 0, 3, 0, 3, 0}, 4);
}

}  // namespace
}  // namespace lane::test
