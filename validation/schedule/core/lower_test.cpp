#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::ElementsAre;

/// The body in short: f1 b1 w1 fold1 (block), S1 R1 (message over edge 1), +0 (post bucket 0), wait, tie, decide, update.
std::vector<std::string> brief(Lane const& lane) {
  std::vector<std::string> out;
  for (Action const& action : lane.body) {
    std::string word(name(action.what));
    if (action.what == Do::post) {
      word.clear();
      for (Posting const& posting : postings_of(lane, action.token)) {
        bool const collective = posting.transfer == Transfer::collective;
        if (collective && posting.group.empty()) word += "+" + std::to_string(posting.bucket.v);
        if (!posting.group.empty()) word += posting.group;
        if (!collective) word += (posting.transfer == Transfer::send ? "S" : "R") + std::to_string(posting.micro.v);
      }
    } else if (action.what == Do::fold || action.what == Do::backward) {
      word += std::to_string(action.chunk.v);
    } else if (action.what == Do::wait) {
      word += std::to_string(action.token.v);
    }
    out.push_back(word);
  }
  return out;
}

Schedule three_buckets(SumOrder sum, Overlap overlap, int micros = 1) {
  auto const blocks = chain(3);
  Schedule coarse = plan_sequential("ddp", micros);
  coarse.sum = sum;
  Schedule schedule = bucket(refine(coarse, blocks, {0, 3}), blocks, {.cap_bytes = 1, .first_cap_bytes = 1});
  schedule = lower(std::move(schedule), blocks, axes(Axis::data), overlap);
  EXPECT_NO_THROW(check(schedule, blocks));
  return schedule;
}

std::vector<std::string> after_forwards(Schedule const& schedule) {
  auto all = brief(schedule.lanes.at(0));
  return {all.begin() + 3, all.end()};
}

TEST(Lower, OverlapPostsEachBucketWhenItIsComplete) {
  EXPECT_THAT(after_forwards(three_buckets({}, Overlap::on)),
              ElementsAre("backward2", "fold2", "+0", "backward1", "fold1", "+1", "backward0", "fold0", "+2", "wait0", "wait1", "wait2",
                          "decide", "update", "update", "update"));
}

TEST(Lower, WithoutOverlapAllBucketsWaitForTheMark) {
  EXPECT_THAT(after_forwards(three_buckets({}, Overlap::off)),
              ElementsAre("backward2", "fold2", "backward1", "fold1", "backward0", "fold0", "+0", "+1", "+2", "wait0", "wait1", "wait2",
                          "decide", "update", "update", "update"));
}

TEST(Lower, RanksFirstReducesLeavesBeforeTheyAreFolded) {
  SumOrder const ranks_first{.inside = Inside::replicas};
  EXPECT_THAT(after_forwards(three_buckets(ranks_first, Overlap::on)),
              ElementsAre("backward2", "+0", "backward1", "+1", "backward0", "+2", "wait0", "wait1", "wait2", "fold2", "fold1", "fold0",
                          "decide", "update", "update", "update"));
  EXPECT_THAT(after_forwards(three_buckets(ranks_first, Overlap::off)),
              ElementsAre("backward2", "backward1", "backward0", "+0", "+1", "+2", "wait0", "wait1", "wait2", "fold2", "fold1", "fold0",
                          "decide", "update", "update", "update"));
}

TEST(Lower, WithoutAxesNothingIsReduced) {
  auto const blocks = chain(2);
  Schedule const schedule = lower(refine(plan_sequential("serial", 2), blocks, {0, 2}), blocks, 0, Overlap::on);
  EXPECT_TRUE(schedule.lanes.at(0).postings.empty());
  EXPECT_EQ(check(schedule, blocks).lanes.at(0).collectives, 0);
}

// case 25: one reduction per bucket and update, however many micro-batches.
TEST(Lower, case_25_ReductionsPerUpdateAreTheBuckets) {
  for (int micros : {1, 4, 7}) {
    for (Overlap overlap : {Overlap::on, Overlap::off}) {
      auto const blocks = chain(3);
      Schedule const schedule = three_buckets({}, overlap, micros);
      EXPECT_EQ(schedule.buckets.at(0).size(), 3u);
      EXPECT_EQ(check(schedule, blocks).lanes.at(0).collectives, 3) << micros;
    }
  }
  EXPECT_EQ(check(three_buckets({.inside = Inside::replicas}, Overlap::on, 4), chain(3)).lanes.at(0).collectives, 12)
      << "ranks first reduces at every micro-batch, and says so";
}

TEST(Lower, PostsOneReceiveAheadAndWaitsForSendsThatAreOver) {
  auto const [schedule, blocks] = lowered(plan_1f1b({2, 2}), 1);
  EXPECT_THAT(brief(schedule.lanes[0]), ElementsAre("forward", "S0", "R0", "forward", "S1", "R1", "wait1", "wait0", "backward0", "wait2",
                                                    "fold0", "wait3", "backward0", "fold0", "+0", "wait4", "decide", "update"));
  EXPECT_THAT(brief(schedule.lanes[1]), ElementsAre("R0", "R1", "wait0", "forward", "backward1", "S0", "fold1", "wait1", "forward",
                                                    "backward1", "S1", "wait2", "fold1", "+0", "wait4", "decide", "update", "wait3"));
}

TEST(Lower, AtMostTwoReceivesOfAChannelAreOpen) {
  auto const blocks = [] {
    auto shapes = chain(2);
    shapes[1].forward_cost = 10;  // the second stage is slow: messages pile up in front of it
    return shapes;
  }();
  Schedule const schedule = lower(refine(plan_gpipe({2, 6}), blocks, {0, 1, 2}), blocks, 0, Overlap::on);
  EXPECT_NO_THROW(check(schedule, blocks));
  int open = 0, most = 0;
  for (Action const& action : schedule.lanes[1].body) {
    if (action.what != Do::post && action.what != Do::wait) continue;
    if (postings_of(schedule.lanes[1], action.token).front().transfer != Transfer::receive) continue;
    open += action.what == Do::post ? 1 : -1;
    most = std::max(most, open);
  }
  EXPECT_EQ(most, 2);
}

TEST(Lower, AReceiveIsNotPostedAheadOfAnUpdate) {
  auto const [schedule, blocks] = lowered(plan_pipedream({3, 1}, Delay::stash), 1);
  std::vector<Action> const& prologue = schedule.lanes[2].prologue;  // F0 B0 U F1 B1 U
  int updates = 0;
  for (Action const& action : prologue) {
    updates += action.what == Do::decide ? 1 : 0;
    if (action.what != Do::post) continue;
    Posting const& posting = postings_of(schedule.lanes[2], action.token).front();
    if (posting.transfer == Transfer::receive) {
      EXPECT_EQ(posting.micro.v, updates) << "the executor counts a micro-batch's terms when it meets it";
    }
  }
  EXPECT_EQ(updates, 2);
}

TEST(Lower, OneLaunchOrderPostsReceivesBeforeTheyAreNeeded) {
  auto const [schedule, blocks] = lowered(plan_1f1b({2, 2}), 1, Tied::no, Overlap::on, Matching::by_launch_order);
  auto const lane = brief(schedule.lanes[0]);
  auto const place = [&](char const* word) { return std::ranges::find(lane, word) - lane.begin(); };
  EXPECT_LT(place("S1"), place("R0")) << "lane 1 makes gradient 0 when activation 1 has been sent";
  EXPECT_LT(place("R0"), place("backward0"));
}

TEST(Lower, ReceivesTheGradientBesideTheRecomputation) {
  auto const [schedule, blocks] = lowered(with_recomputation(plan_gpipe({2, 1})), 1);
  EXPECT_THAT(brief(schedule.lanes[0]),
              ElementsAre("forward", "S0", "R0", "recompute", "wait1", "wait0", "backward0", "fold0", "+0", "wait2", "decide", "update"));
}

TEST(Lower, HoldersOfATiedUnitExchangeItsSlotsAfterTheReduction) {
  auto const [schedule, blocks] = lowered(plan_gpipe({2, 1}), 1, Tied::yes);
  auto const text = brief(schedule.lanes[0]);
  EXPECT_THAT(std::vector(text.end() - 7, text.end()), ElementsAre("+0", "wait2", "tied:0", "wait3", "tie", "decide", "update"));
  Posting const& exchange = schedule.lanes[0].postings.back();
  EXPECT_EQ(exchange.what, Collective::all_gather);
  EXPECT_EQ(exchange.unit, UnitId{0});
}

TEST(Lower, RefusesWeightsTiedOverTheStagesOfAnAsynchronousPipeline) {
  EXPECT_THROW(lowered(plan_pipedream({3, 1}, Delay::stash), 1, Tied::yes), BadRequest);
  EXPECT_NO_THROW(lowered(plan_pipedream({1, 1}, Delay::stash), 2, Tied::yes)) << "both uses are on one stage";
}

/// What a lane does for decisions, in one run of a section.
std::vector<std::string> for_decisions(Lane const& lane, Section section = Section::body) {
  std::vector<std::string> out;
  for (Action const& action : lane[section]) {
    bool const moves = action.what == Do::post || action.what == Do::wait;
    if (moves && postings_of(lane, action.token).front().group.empty()) continue;
    if (moves) out.push_back(std::string(name(action.what)) + " " + postings_of(lane, action.token).front().group);
    if (action.what == Do::tie || action.what == Do::decide || action.what == Do::backward) out.push_back(std::string(name(action.what)));
  }
  return out;
}

TEST(Lower, DeferredDecisionsTakeWhatEveryLaneGaveBefore) {
  auto const blocks = chain(3, Tied::yes);
  Schedule const schedule = lower(refine(plan_joint({3, 1}, Delay::vertical), blocks, {0, 1, 2, 3}), blocks, 0, Overlap::on);
  EXPECT_THAT(for_decisions(schedule.lanes[0]),
              ElementsAre("backward", "post tied:0", "wait tied:0", "tie", "post decision", "wait decision", "decide"));
  EXPECT_THAT(for_decisions(schedule.lanes[1]), ElementsAre("backward", "post decision", "wait decision", "decide"));
  EXPECT_THAT(for_decisions(schedule.lanes[2]),
              ElementsAre("backward", "post tied:0", "post decision", "wait tied:0", "tie", "wait decision", "decide"));
  EXPECT_THAT(for_decisions(schedule.lanes[1], Section::prologue), ElementsAre("backward", "post decision")) << "waited for in the body";
  Proof const proof = check(schedule, blocks);
  for (int lane = 0; lane < 3; ++lane) EXPECT_EQ(proof.lanes[std::size_t(lane)].peak_gradients, lane + 1);
}

TEST(Lower, RefusesADeferredDecisionOnAWeightThatIsFirstUsedLater) {
  auto blocks = chain(3);
  blocks[1].produces.push_back({{7}, 0});
  blocks[2].produces.push_back({{7}, 1});
  for (int b : {1, 2}) blocks[std::size_t(b)].elements.push_back(10);
  Schedule const refined = refine(plan_joint({3, 1}, Delay::vertical), blocks, {0, 1, 2, 3});
  EXPECT_THROW(lower(refined, blocks, 0, Overlap::on), BadRequest);
}

TEST(Lower, TokensAscendOverTheWholeLane) {
  auto const [schedule, blocks] = lowered(plan_pipedream({4, 1}, Delay::stash), 2);
  for (Lane const& lane : schedule.lanes) {
    EXPECT_TRUE(std::is_sorted(lane.postings.begin(), lane.postings.end(), [](auto& a, auto& b) { return a.token < b.token; }));
  }
}

TEST(Lower, NeedsTheStepsBeforeIt) {
  auto const blocks = chain(2);
  EXPECT_THROW(lower(plan_gpipe({2, 2}), blocks, 0, Overlap::on), Error);
  EXPECT_THROW(lower(refine(plan_gpipe({2, 2}), blocks, {0, 1, 2}), blocks, axes(Axis::data), Overlap::on), Error);
  EXPECT_THROW(bucket(plan_gpipe({2, 2}), blocks, {}), Error);
  EXPECT_THROW(refine(refine(plan_gpipe({2, 2}), blocks, {0, 1, 2}), blocks, {0, 1, 2}), Error);
}

}  // namespace
}  // namespace shardmark::test
