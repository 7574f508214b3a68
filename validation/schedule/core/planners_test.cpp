// Every planner at every shape of the grid: the schedule is proven in all three forms, or refused with the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::HasSubstr;

class OnEveryShape : public testing::TestWithParam<NamedPlanner> {};

TEST_P(OnEveryShape, IsProvenCoarseRefinedAndLowered) {
  NamedPlanner const& planner = GetParam();
  int planned = 0;
  over_shapes(planner, [&](PipelineShape shape) {
    Schedule const coarse = planner.plan(shape);
    SCOPED_TRACE(testing::Message() << "p " << shape.stages << " m " << shape.micros << " v " << shape.chunks_per_stage);
    EXPECT_NO_THROW(check(coarse, {}));
    for (Matching matching : {Matching::by_name, Matching::by_launch_order}) {
      for (Tied tied : coarse.defers() ? std::vector{Tied::no, Tied::yes} : std::vector{Tied::no}) {
        auto const [schedule, blocks] = lowered(coarse, 1, tied, Overlap::on, matching);
        EXPECT_NO_THROW(check(schedule, blocks, coarse.defers() ? 0 : 2)) << int(matching) << int(tied);
      }
    }
    ++planned;
  });
  EXPECT_GE(planned, 100) << "the grid has been walked";
}

TEST_P(OnEveryShape, RefusesWhatIsNoPipeline) {
  auto const& plan = GetParam().plan;
  int const chunks = GetParam().chunks.front();
  EXPECT_THROW(plan({0, 1, chunks}), BadRequest);
  EXPECT_THROW(plan({1, 0, chunks}), BadRequest);
  EXPECT_THROW(plan({-3, 4, chunks}), BadRequest);
  EXPECT_THROW(plan({2, 2, 0}), BadRequest);
}

INSTANTIATE_TEST_SUITE_P(Planners, OnEveryShape, testing::ValuesIn(all_planners()),
                         [](auto const& planner) { return planner.param.test_name; });

std::string refusal(auto&& planning) {
  try {
    planning();
  } catch (BadRequest const& problem) {
    return problem.what();
  }
  return {};
}

TEST(Planners, RefusalsSayWhatIsValid) {
  EXPECT_THAT(refusal([] { plan_pipedream({4, 3}, Delay::two_buffers); }), HasSubstr("raise the micro-batches to at least 4"));
  EXPECT_THAT(refusal([] { plan_1f1b({4, 8, 2}); }), HasSubstr("1f1b with 2 chunks a stage"));
  EXPECT_THAT(refusal([] { plan_zero_bubble({4, 8, 1}, ZeroBubble::v); }), HasSubstr("ask for two"));
}

// case 42: an interleaved schedule whose micro-batches the stages don't divide. Here it is planned.
TEST(Planners, case_42_InterleavedWithAnyNumberOfMicroBatches) {
  for (PipelineShape shape : {PipelineShape{2, 3, 2}, {2, 1, 2}, {3, 4, 2}, {4, 7, 3}, {8, 13, 2}}) {
    auto const [schedule, blocks] = lowered(plan_interleaved(shape), 2);
    Proof const proof = check(schedule, blocks);
    for (LaneFacts const& lane : proof.lanes) EXPECT_EQ(lane.peak_versions, 1);
    std::size_t forwards = 0;
    for (Lane const& lane : schedule.lanes) forwards += std::size_t(std::ranges::count(lane.body, Do::forward, &Action::what));
    EXPECT_EQ(forwards, std::size_t(shape.stages * shape.chunks_per_stage * 2 * shape.micros)) << "none is left out";
  }
}

TEST(Planners, InterleavedWithOneChunkIs1F1B) { EXPECT_EQ(to_text(plan_interleaved({3, 5, 1})), to_text(plan_1f1b({3, 5}))); }

TEST(Planners, TheVTurnsRoundOnTheLastStage) {
  EXPECT_EQ(plan_zero_bubble({3, 4, 2}, ZeroBubble::v).lane_of_chunk, (std::vector{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(plan_interleaved({3, 4, 2}).lane_of_chunk, (std::vector{0, 1, 2, 0, 1, 2}));
}

TEST(Planners, GPipeTakesBackwardsInEitherOrder) {
  EXPECT_THAT(render(plan_gpipe({2, 3}, BackwardOrder::newest_first)), HasSubstr("F0 F1 F2 B2 B1 B0"));
  EXPECT_THAT(render(plan_gpipe({2, 3}, BackwardOrder::oldest_first)), HasSubstr("F0 F1 F2 B0 B1 B2"));
}

}  // namespace
}  // namespace shardmark::test
