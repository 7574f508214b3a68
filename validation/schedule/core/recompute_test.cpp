#include "schedule/recompute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planners.hpp"
#include "schedule/simulate.hpp"
#include "schedule/text.hpp"

namespace shardmark::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int blocks_per_chunk = 4;

Schedule refined(Schedule const& coarse, std::vector<BlockShape> const& blocks) {
  return refine(coarse, blocks, even_partition(coarse, blocks_per_chunk));
}

/// Peaks of one kind, over lanes, of `coarse` with four blocks a chunk under a rule; proven with and without communication.
std::vector<int> peaks(Schedule const& coarse, KeepRule const& rule, int LaneFacts::*fact) {
  auto const blocks = chain(int(coarse.lane_of_chunk.size()) * blocks_per_chunk);
  Schedule const schedule = recompute(refined(coarse, blocks), rule);
  Proof const proof = check(schedule, blocks);
  Schedule const communicating =
      lower(bucket(schedule, blocks, {.cap_bytes = 1000, .first_cap_bytes = 500}), blocks, axes(Axis::data), Overlap::on);
  std::vector<int> found;
  for (LaneFacts const& lane : proof.lanes) found.push_back(lane.*fact);
  std::vector<int> again;
  for (LaneFacts const& lane : check(communicating, blocks).lanes) again.push_back(lane.*fact);
  EXPECT_EQ(found, again) << "communication changes nothing";
  return found;
}

/// "r2 b2" of one micro-batch on lane 0: recomputations and backwards in order.
std::vector<std::string> backwards(KeepRule const& rule) {
  auto const blocks = chain(blocks_per_chunk);
  Schedule const schedule = recompute(refined(plan_sequential("serial", 1), blocks), rule);
  std::vector<std::string> out;
  for (Action const& action : schedule.lanes[0].body) {
    if (action.what == Do::recompute) out.push_back("r" + std::to_string(action.chunk.v));
    if (action.what == Do::backward) out.push_back("b" + std::to_string(action.chunk.v));
  }
  return out;
}

TEST(Recompute, RunsEachSegmentAgainRightBeforeItsBackward) {
  EXPECT_THAT(backwards(recompute_all()), ElementsAre("r3", "b3", "r2", "b2", "r1", "b1", "r0", "b0"));
  EXPECT_THAT(backwards(recompute_every(2)), ElementsAre("r2", "r3", "b3", "b2", "r0", "r1", "b1", "b0"));
  EXPECT_THAT(backwards(recompute_every(3)), ElementsAre("r3", "b3", "r0", "r1", "r2", "b2", "b1", "b0"));
  EXPECT_THAT(backwards(recompute_every(9)), ElementsAre("r0", "r1", "r2", "r3", "b3", "b2", "b1", "b0"));
  EXPECT_THAT(backwards(last_stage_off(recompute_all(), 1)), ElementsAre("b3", "b2", "b1", "b0"));
}

TEST(Recompute, GPipeKeepsInputsOfEveryMicroBatchAndOneStash) {
  Schedule const gpipe = plan_gpipe({3, 5});
  EXPECT_THAT(peaks(gpipe, recompute_all(), &LaneFacts::peak_stashes), Each(1)) << "block by block";
  EXPECT_THAT(peaks(gpipe, recompute_all(), &LaneFacts::peak_boundary_inputs), Each(5 * blocks_per_chunk));
  EXPECT_THAT(peaks(gpipe, recompute_every(blocks_per_chunk), &LaneFacts::peak_stashes), Each(blocks_per_chunk)) << "stage by stage";
  EXPECT_THAT(peaks(gpipe, recompute_every(blocks_per_chunk), &LaneFacts::peak_boundary_inputs), Each(5));
}

TEST(Recompute, TheLastMicroBatchAndTheLastStageNeedNone) {
  Schedule const gpipe = plan_gpipe({3, 5});
  EXPECT_THAT(peaks(gpipe, except_last_micro(recompute_all(), 5), &LaneFacts::peak_stashes), Each(blocks_per_chunk)) << "its own";
  EXPECT_THAT(peaks(gpipe, except_last_micro(recompute_all(), 5), &LaneFacts::peak_boundary_inputs), Each(4 * blocks_per_chunk));
  Schedule const one_each = plan_1f1b({3, 5});
  EXPECT_THAT(peaks(one_each, last_stage_off(recompute_all(), 3), &LaneFacts::peak_stashes), ElementsAre(1, 1, blocks_per_chunk));
  EXPECT_THAT(peaks(one_each, last_stage_off(recompute_all(), 3), &LaneFacts::peak_boundary_inputs),
              ElementsAre(3 * blocks_per_chunk, 2 * blocks_per_chunk, 0));
}

TEST(Recompute, ASplitBackwardHoldsWhatItsWeightHalfNeeds) {
  Schedule const split = plan_zero_bubble({4, 8}, ZeroBubble::h1);
  EXPECT_THAT(peaks(split, recompute_all(), &LaneFacts::peak_stashes), Each(1));
  // Until W, a stage holds residues of up to `stage` older micro-batches, and of the one whose input half has just ended.
  EXPECT_THAT(peaks(split, recompute_all(), &LaneFacts::peak_held),
              ElementsAre(1 * blocks_per_chunk, 2 * blocks_per_chunk, 3 * blocks_per_chunk, 4 * blocks_per_chunk));
}

TEST(Recompute, EveryPlannerAndRuleIsProven) {
  std::vector<KeepRule> const rules{recompute_all(), recompute_every(3), except_last_micro(recompute_every(2), 3),
                                    last_stage_off(recompute_all(), 3)};
  for (NamedPlanner const& planner : all_planners()) {
    for (PipelineShape shape : {PipelineShape{1, 3}, {3, 3}, {3, 7}}) {
      shape.chunks_per_stage = planner.chunks.back();
      for (KeepRule const& rule : rules) {
        EXPECT_NO_THROW(peaks(planner.plan(shape), rule, &LaneFacts::peak_held)) << planner.test_name << shape.stages << shape.micros;
      }
    }
  }
}

/// Of one lane and micro-batch, four blocks: what its forwards keep, and the recomputations before its backwards.
std::vector<BlockShape> with_attention_in(std::vector<int> const& which) {
  auto blocks = chain(blocks_per_chunk);
  for (int b : which) blocks[std::size_t(b)].selective_cost = 0.25;
  return blocks;
}

TEST(Recompute, ASelectiveStashIsCompletedRightBeforeItsBackward) {
  auto const blocks = with_attention_in({1, 2});
  Schedule const schedule = recompute(refined(plan_sequential("serial", 1), blocks), recompute_selective(blocks));
  std::vector<std::string> out;
  for (Action const& action : schedule.lanes[0].body)
    if (action.what == Do::forward || action.what == Do::recompute || action.what == Do::backward) out.push_back(to_string(action));
  EXPECT_THAT(out, ElementsAre("forward chunk 0 micro 0 version 0", "forward chunk 1 micro 0 version 0 keeps selective",
                               "forward chunk 2 micro 0 version 0 keeps selective", "forward chunk 3 micro 0 version 0",
                               "backward chunk 3 micro 0 version 0", "recompute chunk 2 micro 0 version 0 keeps selective",
                               "backward chunk 2 micro 0 version 0", "recompute chunk 1 micro 0 version 0 keeps selective",
                               "backward chunk 1 micro 0 version 0", "backward chunk 0 micro 0 version 0"));
  LaneFacts const facts = check(schedule, blocks).lanes[0];
  EXPECT_EQ(facts.peak_stashes, blocks_per_chunk) << "each is one, if smaller";
  EXPECT_EQ(facts.peak_boundary_inputs, 0);
  EXPECT_EQ(
      simulate(schedule, costs_of({seconds_of(blocks[0]), seconds_of(blocks[1]), seconds_of(blocks[2]), seconds_of(blocks[3])})).makespan,
      4 * 3 + 2 * 0.25);
}

/// What the checker says of four blocks whose recomputations `change` has spoiled.
std::string problem_with(KeepRule const& rule, std::function<void(std::vector<Action>&)> const& change) {
  auto const blocks = with_attention_in({0, 1, 2, 3});
  Schedule schedule = recompute(refined(plan_sequential("serial", 1), blocks), rule);
  change(schedule.lanes[0].body);
  try {
    check(schedule, blocks);
  } catch (BadSchedule const& problem) {
    return problem.what();
  }
  return {};
}

Action& nth(std::vector<Action>& actions, Do what, int n) {
  for (Action& action : actions)
    if (action.what == what && n-- == 0) return action;
  return actions.at(actions.size());
}

TEST(Recompute, WhatIsNotThereIsMissed) {
  auto const selective = recompute_selective(with_attention_in({0, 1, 2, 3}));
  auto const drop_first = [](std::vector<Action>& a) { a.erase(std::ranges::find(a, Do::recompute, &Action::what)); };
  EXPECT_THAT(problem_with(selective, drop_first), HasSubstr("backward chunk 3 micro 0 version 0: its stash is not there, or not whole"));
  EXPECT_THAT(problem_with(recompute_all(), drop_first), HasSubstr("backward chunk 3 micro 0 version 0: its stash is not there"));
  EXPECT_THAT(problem_with(recompute_every(4), drop_first), HasSubstr("recompute chunk 1 micro 0 version 0: nothing has kept its input"));
  auto const keeps = [](Do what, Kept kept) { return [=](std::vector<Action>& a) { nth(a, what, 0).keeps = kept; }; };
  EXPECT_THAT(problem_with(recompute_all(), keeps(Do::forward, Kept::nothing)), HasSubstr("nothing has kept its input"));
  EXPECT_THAT(problem_with(recompute_all(), keeps(Do::forward, Kept::stash)), HasSubstr("its stash is there already"));
  EXPECT_THAT(problem_with(recompute_all(), keeps(Do::recompute, Kept::selective)), HasSubstr("it has no selective stash"));
  EXPECT_THAT(problem_with(recompute_all(), keeps(Do::recompute, Kept::input)), HasSubstr("its stash is not there"));
  EXPECT_THAT(problem_with(recompute_every(4), [](std::vector<Action>& a) { nth(a, Do::forward, 1).keeps = Kept::input; }),
              HasSubstr("it is given an input, and has kept one"));
}

TEST(Recompute, ASegmentWithoutAKeptInputIsRefused) {
  auto const blocks = chain(blocks_per_chunk);
  KeepRule const broken = [](int, ChunkId block, MicroId) { return block.v == 2 ? Kept::nothing : Kept::stash; };
  EXPECT_THROW(recompute(refined(plan_sequential("serial", 1), blocks), broken), Error);
  EXPECT_THROW(recompute(plan_sequential("serial", 1), recompute_all()), Error) << "a coarse schedule has no blocks";
  EXPECT_THROW(recompute_every(0), BadRequest);
}

}  // namespace
}  // namespace shardmark::test
