#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners.hpp"
#include "schedule/check.hpp"

namespace shardmark::test {
namespace {

using testing::ElementsAre;

std::vector<std::string> lines(std::vector<Action> const& actions) {
  std::vector<std::string> out;
  for (Action const& action : actions) out.push_back(to_string(action));
  return out;
}

TEST(PlanSequential, RunsEachMicroBatchToItsEnd) {
  Schedule const schedule = plan_sequential("serial", 2);
  EXPECT_EQ(schedule.name, "serial");
  EXPECT_TRUE(schedule.synchronous());
  EXPECT_THAT(lines(schedule.lanes.at(0).body),
              ElementsAre("forward chunk 0 micro 0 version 0", "backward chunk 0 micro 0 version 0", "forward chunk 0 micro 1 version 0",
                          "backward chunk 0 micro 1 version 0", "reduce", "update version 1"));
}

TEST(PlanSequential, SerialTwinKeepsTheNestingOfItsLeaves) {
  Schedule const schedule = plan_sequential("serial", SumShape{3, 4});
  EXPECT_EQ(schedule.micros_per_window, 12);
  EXPECT_EQ(schedule.leaves, (SumShape{3, 4}));
  EXPECT_EQ(plan_sequential("serial", 12).leaves, (SumShape{1, 12}));
}

TEST(Refine, WalksBlocksUpAndDownAndFoldsAfterEachBackward) {
  auto const blocks = chain(2);
  Schedule const schedule = refine(plan_sequential("serial", 1), blocks, {0, 2});
  EXPECT_EQ(schedule.form, Form::refined);
  EXPECT_THAT(schedule.lane_of_chunk, ElementsAre(0, 0));
  EXPECT_THAT(lines(schedule.lanes.at(0).body),
              ElementsAre("forward chunk 0 micro 0 version 0", "forward chunk 1 micro 0 version 0", "backward chunk 1 micro 0 version 0",
                          "fold chunk 1 micro 0", "backward chunk 0 micro 0 version 0", "fold chunk 0 micro 0", "reduce",
                          "decide version 1", "update unit 0 version 1", "update unit 1 version 1"));
}

TEST(Refine, FoldsAfterTheWeightHalfOfASplitBackward) {
  auto const blocks = chain(2);
  auto const text = lines(refine(plan_zero_bubble({1, 1}, ZeroBubble::h1), blocks, {0, 2}).lanes.at(0).body);
  EXPECT_THAT(std::vector(text.begin() + 2, text.begin() + 8),
              ElementsAre("backward_input chunk 1 micro 0 version 0", "backward_input chunk 0 micro 0 version 0",
                          "backward_weight chunk 1 micro 0 version 0", "fold chunk 1 micro 0", "backward_weight chunk 0 micro 0 version 0",
                          "fold chunk 0 micro 0"));
}

/// Two replicas of two micro-batches: 0 and 1 are the first's, 2 and 3 the second's.
TEST(SideBySide, EachBlockRunsAMicroBatchOfAllReplicasBeforeTheNextBlock) {
  auto const blocks = chain(2);
  Schedule const schedule = side_by_side(refine(plan_sequential("serial", SumShape{2, 2}), blocks, {0, 2}));
  auto const text = lines(schedule.lanes.at(0).body);
  std::vector<std::string> expected;
  for (int k : {0, 1}) {
    for (int block : {0, 1})
      for (int m : {k, k + 2}) expected.push_back(fmt::format("forward chunk {} micro {} version 0", block, m));
    for (int block : {1, 0}) {
      for (int m : {k, k + 2}) expected.push_back(fmt::format("backward chunk {} micro {} version 0", block, m));
      for (int m : {k, k + 2}) expected.push_back(fmt::format("fold chunk {} micro {}", block, m));
    }
  }
  for (char const* end : {"reduce", "decide version 1", "update unit 0 version 1", "update unit 1 version 1"}) expected.push_back(end);
  EXPECT_EQ(text, expected);
  check(lower(schedule, blocks, 0, Overlap::off), blocks);
}

TEST(Refine, BlocksWithoutParametersFoldAndUpdateNothing) {
  std::vector<BlockShape> const blocks{{.name = "flatten"}};
  EXPECT_THAT(lines(refine(plan_sequential("serial", 1), blocks, {0, 1}).lanes.at(0).body),
              ElementsAre("forward chunk 0 micro 0 version 0", "backward chunk 0 micro 0 version 0", "reduce", "decide version 1"));
}

TEST(Refine, ATiedUnitIsTiedAndUpdatedOnceOnEachLaneThatHoldsIt) {
  auto const count = [](Lane const& lane, std::string const& text) {
    auto const all = lines(lane.body);
    return std::count(all.begin(), all.end(), text);
  };
  auto const blocks = chain(3, Tied::yes);
  Schedule const one_lane = refine(plan_sequential("serial", 2), blocks, {0, 3});
  EXPECT_EQ(count(one_lane.lanes[0], "tie unit 0 version 1"), 1);
  EXPECT_EQ(count(one_lane.lanes[0], "update unit 0 version 1"), 1);

  Schedule const three_lanes = refine(plan_1f1b({3, 4}), blocks, {0, 1, 2, 3});
  for (int lane : {0, 1, 2}) {
    int const holds = lane == 1 ? 0 : 1;
    EXPECT_EQ(count(three_lanes.lanes[std::size_t(lane)], "tie unit 0 version 1"), holds) << lane;
    EXPECT_EQ(count(three_lanes.lanes[std::size_t(lane)], "update unit 0 version 1"), holds) << lane;
    EXPECT_EQ(count(three_lanes.lanes[std::size_t(lane)], "decide version 1"), 1) << lane;
  }
  auto const tied = tied_units(blocks, three_lanes.lane_of_chunk);
  ASSERT_EQ(tied.size(), 1u);
  EXPECT_THAT(tied[0].lane_of_slot, ElementsAre(0, 2));
  EXPECT_THAT(tied[0].holders(), ElementsAre(0, 2));
  EXPECT_EQ(tied[0].slots_per_holder(), 1);
  EXPECT_EQ(tied_group(tied[0].unit), "tied:0");
}

// Cases 21 and 44 of faults seen elsewhere start here: no block may be lost between two chunks.
TEST(Refine, RefusesWhatIsNoPartition) {
  auto const blocks = chain(4);
  Schedule const coarse = plan_gpipe({2, 2});
  for (std::vector<int> const& bad : {std::vector{0, 2}, {0, 2, 3}, {1, 2, 4}, {0, 3, 2}, {0, 4, 4}, {0, 2, 4, 4}}) {
    EXPECT_THROW(refine(coarse, blocks, bad), Error) << testing::PrintToString(bad);
  }
  EXPECT_NO_THROW(refine(coarse, blocks, {0, 3, 4}));
}

TEST(Shifted, CountsFromTheFirstRepetitionAndClampsToTheInitialWeights) {
  Schedule const schedule = plan_pipedream({3, 1}, Delay::stash);
  Action const backward{.what = Do::backward, .chunk = {0}, .micro = {0}, .version = {-2}};
  EXPECT_EQ(shifted(backward, schedule, 1).version, Version{0});
  EXPECT_EQ(shifted(backward, schedule, 3).version, Version{1});
  EXPECT_EQ(shifted(backward, schedule, 3).micro, MicroId{3});
  Action const fold{.what = Do::fold, .chunk = {0}, .micro = {0}};
  EXPECT_EQ(shifted(fold, schedule, 3).version, Version{}) << "a fold has no version";
  EXPECT_EQ(shifted({.what = Do::wait, .token = {4}}, schedule, 3).token, Token{4}) << "tokens don't move";
}

}  // namespace
}  // namespace shardmark::test
