#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<int> each(Proof const& proof, int LaneFacts::*fact) {
  std::vector<int> out;
  for (LaneFacts const& lane : proof.lanes) out.push_back(lane.*fact);
  return out;
}

Proof prove(Schedule const& coarse, int blocks_per_chunk = 1) {
  auto const [schedule, blocks] = lowered(coarse, blocks_per_chunk);
  return check(schedule, blocks);
}

// case 29: activations live at once; counts are block-micro-batches.
TEST(Check, case_29_LiveActivationsOf1F1BAndGPipe) {
  EXPECT_THAT(each(prove(plan_1f1b({4, 8})), &LaneFacts::peak_stashes), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(each(check(plan_1f1b({4, 8}), {}), &LaneFacts::peak_stashes), ElementsAre(4, 3, 2, 1)) << "coarse: the same, in chunks";
  EXPECT_THAT(each(prove(plan_1f1b({4, 8}), 3), &LaneFacts::peak_stashes), ElementsAre(12, 9, 6, 3));
  EXPECT_THAT(each(prove(plan_1f1b({4, 2})), &LaneFacts::peak_stashes), ElementsAre(2, 2, 2, 1)) << "min(M, S-s)";
  EXPECT_THAT(each(prove(plan_gpipe({4, 4})), &LaneFacts::peak_stashes), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(each(prove(plan_gpipe({4, 8})), &LaneFacts::peak_stashes), ElementsAre(8, 8, 8, 8));
}

/// Buffers of one block's gradient that hold a partial sum at once, when its leaves are folded in the schedule's order.
int gradient_buffers(Schedule const& refined, int block) {
  Lane const& lane = refined.lanes[std::size_t(refined.lane_of_chunk[std::size_t(block)])];
  CanonicalTree tree(refined.leaves);
  int most = 0;
  for (Action const& action : lane.body) {
    if (action.what != Do::fold || action.chunk.v != block) continue;
    most = std::max(most, tree.live() + 1);  // the new leaf needs a buffer before it's merged
    tree.arrive(action.micro.v, [](int, int) {});
  }
  EXPECT_TRUE(tree.complete());
  return most;
}

// case 29: gradients of all micro-batches are kept. In the tree they need a few buffers, whatever the order of backwards.
TEST(Check, case_29_GradientBuffersGrowWithTheLogarithm) {
  for (NamedPlanner const& planner : all_planners()) {
    for (int micros = 1; micros <= 16; ++micros) {
      Schedule const coarse = planner.plan({std::min(4, micros), micros, planner.chunks.back()});
      if (!coarse.synchronous()) continue;
      auto const blocks = chain(int(coarse.lane_of_chunk.size()));
      Schedule const refined = refine(coarse, blocks, even_partition(coarse, 1));
      for (int block = 0; block < int(blocks.size()); ++block) {
        EXPECT_LE(gradient_buffers(refined, block), int(std::log2(micros)) + 2) << planner.test_name << micros;
      }
    }
  }
  auto const blocks = chain(1);
  EXPECT_EQ(gradient_buffers(refine(plan_gpipe({1, 8}, BackwardOrder::oldest_first), blocks, {0, 1}), 0), 4);
}

TEST(Check, RecomputationKeepsBoundaryInputsAndOneStash) {
  Proof const proof = prove(with_recomputation(plan_gpipe({3, 5})), 4);
  EXPECT_THAT(each(proof, &LaneFacts::peak_boundary_inputs), ElementsAre(5, 5, 5));
  EXPECT_THAT(each(proof, &LaneFacts::peak_stashes), ElementsAre(4, 4, 4)) << "one micro-batch of four blocks";
}

TEST(Check, SplitBackwardHoldsWeightResidues) {
  Proof const proof = prove(plan_zero_bubble({4, 8}, ZeroBubble::h1));
  EXPECT_THAT(each(proof, &LaneFacts::peak_stashes), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(each(proof, &LaneFacts::peak_held), ElementsAre(4, 4, 4, 4)) << "ZB-H1 holds p everywhere until W";
}

TEST(Check, InterleavedChunksShareALane) {
  for (auto const& [stages, micros, chunks] : {std::array{2, 4, 2}, {2, 6, 3}, {4, 8, 2}}) {
    Proof const coarse = check(plan_interleaved({stages, micros, chunks}), {});
    EXPECT_EQ(coarse.lanes[0].peak_stashes, std::min(micros * chunks, stages * chunks + stages - 1));
    auto const [schedule, blocks] = lowered(plan_interleaved({stages, micros, chunks}), 1);
    EXPECT_NO_THROW(check(schedule, blocks)) << "with two stages the next lane is the previous one";
  }
}

// case 69: staleness S-1-s and the versions of the scalar-chain fixture.
TEST(Check, case_69_StalenessOfStashing) {
  Proof const proof = prove(plan_pipedream({4, 1}, Delay::stash));
  EXPECT_THAT(each(proof, &LaneFacts::staleness), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(each(proof, &LaneFacts::peak_versions), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(each(proof, &LaneFacts::peak_stashes), ElementsAre(4, 3, 2, 1));
}

TEST(Check, case_69_ForwardVersionsOfStashing) {
  Schedule const schedule = plan_pipedream({3, 1}, Delay::stash);
  std::vector<std::vector<int>> versions;
  for (Lane const& lane : schedule.lanes) {
    auto& list = versions.emplace_back();
    auto const note = [&](std::vector<Action> const& actions, int windows) {
      for (Action const& action : actions) {
        if (action.what == Do::forward) list.push_back(shifted(action, schedule, windows).version.v);
      }
    };
    note(lane.prologue, 0);
    note(lane.body, 0);
    note(lane.body, 1);
  }
  EXPECT_THAT(versions, ElementsAre(ElementsAre(0, 0, 0, 1), ElementsAre(0, 0, 1, 2), ElementsAre(0, 1, 2, 3)));
}

TEST(Check, VerticalSyncKeepsAsManyVersionsAsStages) {
  Proof const proof = prove(plan_pipedream({4, 1}, Delay::vertical));
  EXPECT_THAT(each(proof, &LaneFacts::staleness), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(each(proof, &LaneFacts::peak_versions), ElementsAre(4, 4, 4, 4));
}

TEST(Check, DoubleBufferedWeightsAreTwoAndOneBehind) {
  for (int micros : {4, 5, 9}) {
    Proof const proof = prove(plan_pipedream({4, micros}, Delay::two_buffers));
    EXPECT_THAT(each(proof, &LaneFacts::staleness), ElementsAre(1, 1, 1, 1)) << micros;
    EXPECT_THAT(each(proof, &LaneFacts::peak_versions), ElementsAre(2, 2, 2, 2)) << micros;
  }
  EXPECT_THROW(plan_pipedream({4, 3}, Delay::two_buffers), BadRequest) << "needs as many micro-batches as stages";
}

TEST(Check, SynchronousSchedulesHoldOneVersion) {
  for (Schedule const& coarse : {plan_gpipe({3, 4}), plan_1f1b({3, 4}), plan_zero_bubble({3, 4}, ZeroBubble::h1)}) {
    Proof const proof = prove(coarse);
    EXPECT_THAT(each(proof, &LaneFacts::peak_versions), ElementsAre(1, 1, 1));
    EXPECT_THAT(each(proof, &LaneFacts::staleness), ElementsAre(0, 0, 0));
    EXPECT_EQ(proof.windows_checked, 5);
  }
}

TEST(Check, CountsPostings) {
  Proof const proof = prove(plan_1f1b({3, 5}), 2);
  EXPECT_THAT(each(proof, &LaneFacts::sends), ElementsAre(5, 10, 5));
  EXPECT_THAT(each(proof, &LaneFacts::receives), ElementsAre(5, 10, 5));
}

/// Messages as a naive program has them: blocking sends right where the data is made, blocking receives right where it is needed.
Schedule with_blocking_sends(Schedule schedule) {
  for (Lane& lane : schedule.lanes) {
    std::vector<Action> out;
    std::vector<Posting> postings;
    for (Action const& action : lane.body) {
      if (action.what != Do::post && action.what != Do::wait) {
        out.push_back(action);
        continue;
      }
      Posting posting = postings_of(lane, action.token).front();
      Do const blocks_at = posting.transfer == Transfer::receive ? Do::wait : Do::post;
      if (action.what != blocks_at) continue;
      posting.token = {int(postings.size())};
      postings.push_back(posting);
      for (Do what : {Do::post, Do::wait}) out.push_back({.what = what, .micro = posting.micro, .token = posting.token});
    }
    lane.body = out;
    lane.postings = postings;
  }
  return schedule;
}

// case 18: both lanes block in send, and only small messages hide it.
TEST(Check, case_18_Naive1F1BDeadlocksUnderRendezvous) {
  auto const [schedule, blocks] = lowered(plan_1f1b({4, 8}), 1);
  EXPECT_NO_THROW(check(schedule, blocks));
  try {
    check(with_blocking_sends(schedule), blocks);
    FAIL() << "every lane sends, and none receives";
  } catch (BadSchedule const& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("stuck for ever under rendezvous"));
    EXPECT_THAT(problem.what(), HasSubstr("lane 0, body action"));
    EXPECT_THAT(problem.what(), HasSubstr("lane 0 waits for: send activation edge 1 micro"));
    EXPECT_THAT(problem.what(), HasSubstr("lane 3 waits for: send gradient edge 3 micro 0 to lane 2"));
    EXPECT_EQ(problem.code(), Exit::bad_request);
  }
}

TEST(Check, NaiveGPipeEndsUnderRendezvous) {
  auto const [schedule, blocks] = lowered(plan_gpipe({4, 8}), 1);
  EXPECT_NO_THROW(check(with_blocking_sends(schedule), blocks)) << "all forwards flow one way, then all backwards the other";
}

TEST(Check, OneLaunchOrderNeedsReceivesInThatOrder) {
  auto const [late, blocks] = lowered(plan_1f1b({3, 6}), 1);
  EXPECT_THAT(check(late, blocks).models, ElementsAre(CommunicationModel::rendezvous, CommunicationModel::fifo));
  try {
    check(late, blocks, 0, communication_models);
    FAIL() << "the two directions of a boundary block each other";
  } catch (BadSchedule const& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("stuck for ever under launch order"));
  }
  Schedule const early = lowered(plan_1f1b({3, 6}), 1, Tied::no, Overlap::on, Matching::by_launch_order).schedule;
  EXPECT_THAT(check(early, blocks).models, ElementsAreArray(communication_models)) << "what lower() was asked for is proven unasked";
}

TEST(Check, ALaneOrderThatNoDataFlowAllowsIsStuckWithoutCommunicationToo) {
  Schedule schedule = plan_gpipe({2, 2});
  auto& body = schedule.lanes[1].body;
  std::swap(body[0], body[3]);  // the last stage's backward 0 before its forward
  EXPECT_THROW(check(schedule, {}), BadSchedule);
  schedule = plan_gpipe({2, 2});
  std::swap(schedule.lanes[0].body[1], schedule.lanes[0].body[2]);  // backward 1 before forward 1
  EXPECT_THROW(check(schedule, {}), BadSchedule);
}

}  // namespace
}  // namespace shardmark::test
