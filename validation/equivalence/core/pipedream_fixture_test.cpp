// Hard test 1: the PipeDream scalar chain (case 69), exact in fp64. Versions of weights are right or these numbers are not.

#include <gtest/gtest.h>

#include <cmath>

#include "validation/equivalence/core/scalar_chain.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

double over(double numerator, int power) { return std::ldexp(numerator, -power); }

TEST(PipeDreamFixture, case_69_weight_stashing) {
  ChainOutcome const got = run_chain({plan_pipedream({3, 1}, Delay::stash), {1, 2, 1}, {1}, 4});
  EXPECT_EQ(got.weights, (std::vector{over(-12963675, 27), over(389443749, 28), over(60239, 18)}));
  EXPECT_EQ(got.losses, (std::vector{0.5, 2.0, 225.0 / 2048, over(116100625, 27)}));
}

TEST(PipeDreamFixture, case_69_vertical_sync) {
  ChainOutcome const got = run_chain({plan_pipedream({3, 1}, Delay::vertical), {1, 2, 1}, {1}, 4});
  EXPECT_EQ(got.weights, (std::vector{-13435.0 / 8192, 2945.0 / 4096, -13435.0 / 8192}));
  EXPECT_EQ(got.losses, (std::vector{0.5, 4.5, 2.0, 5041.0 / 8192}));
}

TEST(PipeDreamFixture, case_69_vertical_sync_with_unequal_outer_weights) {
  ChainOutcome const got = run_chain({plan_pipedream({3, 1}, Delay::vertical), {1, 2, 1.5}, {1}, 4});
  EXPECT_EQ(got.weights, (std::vector{over(-2329, 9), over(-205, 8), over(-4569, 11)}));
  EXPECT_EQ(got.losses, (std::vector{2.0, 12.5, 4.5, 9.0 / 512}));
}

TEST(PipeDreamFixture, case_69_double_buffered_weights) {
  ChainOutcome const got = run_chain({plan_pipedream({3, 4}, Delay::two_buffers), {1, 2, 1.5}, {1}, 3});
  EXPECT_EQ(got.weights, (std::vector{over(-1983449313, 29), over(-89242113, 28), over(-1905556939, 30)}));
  ASSERT_EQ(got.losses.size(), 3u);
  EXPECT_EQ(got.losses[0] / 4, 63.0 / 8);
  EXPECT_EQ(got.losses[1] / 4, 63.0 / 8);
  EXPECT_EQ(got.losses[2] / 4, over(1263190581, 32));
}

}  // namespace
}  // namespace shardmark::testing
