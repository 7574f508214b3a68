#include "metrics/placement.hpp"

#include <gtest/gtest.h>

namespace shardmark {
namespace {

using Ints = std::vector<int>;

TEST(Placement, case_110_RanksOnOneCoreAreNamed) {
  auto const crowding = find_crowding({{0, "n014", {0}}, {1, "n014", {0}}, {2, "n014", {0}}, {3, "n014", {0}}});
  ASSERT_EQ(crowding.size(), 1u);
  EXPECT_EQ(crowding[0].text(), "ranks 0-3 on n014 share core 0");
  EXPECT_EQ(ranks_per_core(crowding), 4);
}

TEST(Placement, case_110_BoundToCoresOfTheirOwn) {
  EXPECT_TRUE(find_crowding({{0, "n1", {0}}, {1, "n1", {1}}}).empty());
  EXPECT_EQ(ranks_per_core({}), 1);
}

TEST(Placement, EqualCoreNumbersOnDifferentNodesAreDifferentCores) { EXPECT_TRUE(find_crowding({{0, "n1", {0}}, {1, "n2", {0}}}).empty()); }

TEST(Placement, UnboundRanksCrowdOnlyWhenThereAreTooMany) {
  EXPECT_TRUE(find_crowding({{0, "n1", {0, 1}}, {1, "n1", {0, 1}}}).empty());
  auto const crowding = find_crowding({{0, "n1", {0, 1}}, {1, "n1", {0, 1}}, {2, "n1", {0, 1}}});
  ASSERT_EQ(crowding.size(), 1u);
  EXPECT_EQ(crowding[0].ranks, (Ints{0, 1, 2}));
  EXPECT_EQ(crowding[0].per_core(), 2);
}

// Masks that overlap only in part: every pair has two cores, yet all three have two together.
TEST(Placement, PartlyOverlappingMasks) {
  EXPECT_TRUE(find_crowding({{0, "n1", {0, 1}}, {1, "n1", {0}}, {2, "n1", {1, 2}}}).empty()) << "0 on 1, 1 on 0, 2 on 2";
  auto const crowding = find_crowding({{0, "n1", {0, 1}}, {1, "n1", {0}}, {2, "n1", {1}}, {3, "n1", {5}}});
  ASSERT_EQ(crowding.size(), 1u);
  EXPECT_EQ(crowding[0].ranks, (Ints{0, 1, 2}));
  EXPECT_EQ(crowding[0].cores, (Ints{0, 1}));
}

TEST(Placement, ThreadsCountLikeRanks) {
  EXPECT_TRUE(find_crowding({{0, "n1", {0, 1}, 2}, {1, "n1", {2, 3}, 2}}).empty());
  auto const crowding = find_crowding({{0, "n1", {0, 1}, 2}, {1, "n1", {1, 2}, 2}});
  ASSERT_EQ(crowding.size(), 1u);
  EXPECT_EQ(crowding[0].threads, 4);
  EXPECT_EQ(crowding[0].per_core(), 2);
}

TEST(Placement, SeparateCrowdsAreSeparateEntries) {
  auto const crowding = find_crowding({{0, "n1", {0}}, {1, "n1", {0}}, {2, "n1", {7}}, {3, "n1", {7}}});
  ASSERT_EQ(crowding.size(), 2u);
}

}  // namespace
}  // namespace shardmark
