#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::ElementsAre;

/// Blocks 0..4 with 1, 2, 3, 4, 5 elements; backward completes block 4 first.
std::vector<BlockShape> staircase() {
  std::vector<BlockShape> blocks;
  for (int b = 0; b < 5; ++b) blocks.push_back({.produces = {{{b}, 0}}, .elements = {b + 1}});
  return blocks;
}

std::vector<std::vector<int>> units(std::vector<Bucket> const& buckets) {
  std::vector<std::vector<int>> out;
  for (Bucket const& bucket : buckets) {
    auto& list = out.emplace_back();
    for (Segment segment : bucket.segments) list.push_back(segment.unit.v);
  }
  return out;
}

std::vector<Bucket> fill(BucketRule rule) {
  auto const blocks = staircase();
  return bucket(refine(plan_sequential("serial", 2), blocks, {0, 5}), blocks, rule).buckets.at(0);
}

TEST(Bucket, FollowsBackwardAndNeverExceedsTheCap) {
  EXPECT_THAT(units(fill({.cap_bytes = 28, .first_cap_bytes = 28, .last_alone = false})),
              ElementsAre(ElementsAre(4), ElementsAre(3, 2), ElementsAre(1, 0)));
}

TEST(Bucket, FirstClosesEarlyAndLastIsAlone) {
  EXPECT_THAT(units(fill({.cap_bytes = 1000, .first_cap_bytes = 20, .last_alone = true})),
              ElementsAre(ElementsAre(4), ElementsAre(3, 2, 1), ElementsAre(0)));
}

TEST(Bucket, ASegmentLargerThanTheCapIsABucketOfItsOwn) {
  EXPECT_THAT(units(fill({.cap_bytes = 4, .first_cap_bytes = 4, .last_alone = false})),
              ElementsAre(ElementsAre(4), ElementsAre(3), ElementsAre(2), ElementsAre(1), ElementsAre(0)));
}

TEST(Bucket, CountsElementsAndTheirWidth) {
  auto const wide = fill({.cap_bytes = 56, .first_cap_bytes = 56, .last_alone = false, .element_bytes = 8});
  EXPECT_THAT(units(wide), ElementsAre(ElementsAre(4), ElementsAre(3, 2), ElementsAre(1, 0)));
  EXPECT_EQ(wide[1].elements, 7);
  EXPECT_EQ(wide[1].id, BucketId{1});
}

TEST(Bucket, OneSegmentIsOneBucket) {
  auto const blocks = chain(1);
  EXPECT_THAT(units(bucket(refine(plan_sequential("serial", 1), blocks, {0, 1}), blocks, {}).buckets.at(0)), ElementsAre(ElementsAre(0)));
}

TEST(Bucket, OrderIsThatOfTheLastMicroBatchAlsoWhenWeightGradientsAreDeferred) {
  auto const blocks = staircase();
  Schedule const schedule =
      bucket(refine(plan_zero_bubble({2, 4}, ZeroBubble::h1), blocks, {0, 2, 5}), blocks, {.cap_bytes = 1, .first_cap_bytes = 1});
  EXPECT_THAT(units(schedule.buckets[0]), ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(units(schedule.buckets[1]), ElementsAre(ElementsAre(4), ElementsAre(3), ElementsAre(2)));
}

TEST(Bucket, SlotsOfATiedUnitAreReducedApart) {
  auto const blocks = chain(3, Tied::yes);
  Schedule const schedule = bucket(refine(plan_sequential("serial", 1), blocks, {0, 3}), blocks, {.cap_bytes = 1, .first_cap_bytes = 1});
  EXPECT_EQ(schedule.buckets.at(0).front().segments, (std::vector<Segment>{{{2}, 0}}));
  EXPECT_EQ(schedule.buckets.at(0).at(1).segments, (std::vector<Segment>{{{0}, 1}}));
  EXPECT_EQ(schedule.buckets.at(0).back().segments, (std::vector<Segment>{{{0}, 0}}));
}

}  // namespace
}  // namespace shardmark::test
