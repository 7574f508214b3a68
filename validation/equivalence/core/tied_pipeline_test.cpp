// Hard test 2: a two-stage flush pipeline with a tied weight equals serial, bit for bit: sums, holders, and the order of everything,
// also when streams run as adversely as events allow, and when blocks are recomputed.

#include <gtest/gtest.h>

#include "backend/decorators/adversarial.hpp"
#include "validation/equivalence/core/training.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

OptimizerSettings const sgd{.momentum = 0.9, .clip_norm = 0.5, .rate = {.base = 0.1}};
OptimizerSettings const adamw{.rule = Rule::adamw, .rate = {.base = 1e-2}};

class TiedPipeline : public ::testing::TestWithParam<int> {
 protected:
  Outcome run(Schedule const& coarse, std::vector<int> const& first_block, OptimizerSettings const& optimizer,
              MakeBackend const& make = reference) const {
    return train({.coarse = coarse, .first_block = first_block, .optimizer = optimizer, .cut = {.micros = GetParam()}, .make = make});
  }
  Outcome serial(OptimizerSettings const& optimizer) const { return run(plan_sequential("serial", GetParam()), {0, 4}, optimizer); }
};

TEST_P(TiedPipeline, case_14_two_stages_equal_serial_bitwise) {
  Outcome const want = serial(sgd);
  ASSERT_EQ(want.losses.size(), 4u);
  EXPECT_NE(want.losses.front(), want.losses.back());
  expect_equal(run(plan_1f1b({2, GetParam()}), {0, 2, 4}, sgd), want);
  expect_equal(run(plan_gpipe({2, GetParam()}), {0, 1, 4}, sgd), want);
}

/// Two stages: the next lane is the previous one, and messages of both directions and of two chunks cross the same link.
TEST_P(TiedPipeline, case_42_interleaved_and_zero_bubble_equal_serial_bitwise) {
  Outcome const want = serial(adamw);
  expect_equal(run(plan_interleaved({2, GetParam(), 2}), {0, 1, 2, 3, 4}, adamw), want);
  expect_equal(run(plan_zero_bubble({2, GetParam(), 2}, ZeroBubble::v), {0, 1, 2, 3, 4}, adamw), want);
  for (ZeroBubble kind : {ZeroBubble::h1, ZeroBubble::h2}) {
    expect_equal(run(plan_zero_bubble({3, GetParam()}, kind), {0, 1, 3, 4}, adamw), want);
  }
}

TEST_P(TiedPipeline, under_adversarial_streams) {
  Outcome const want = serial(adamw);
  for (std::uint64_t seed : {1, 2, 3}) {
    // The inner backend of each rank outlives the adversary around it.
    std::vector<std::unique_ptr<Backend>> inner;
    for (int r = 0; r < 2; ++r) inner.push_back(make_reference_backend());
    auto const adversarial = [&](int rank) { return make_adversarial_backend(*inner[std::size_t(rank)], seed + 10 * std::uint64_t(rank)); };
    expect_equal(run(plan_1f1b({2, GetParam()}), {0, 2, 4}, adamw, adversarial), want);
  }
}

/// Masks, sums and losses are those of a run that keeps everything; the loss is counted once.
TEST_P(TiedPipeline, case_17_recomputation_changes_no_bit) {
  Outcome const want = serial(sgd);
  expect_equal(run(test::with_recomputation(plan_sequential("serial", GetParam())), {0, 4}, sgd), want);
  expect_equal(run(test::with_recomputation(plan_gpipe({2, GetParam()})), {0, 2, 4}, sgd), want);
  expect_equal(run(test::with_recomputation(plan_1f1b({3, GetParam()})), {0, 1, 3, 4}, sgd), want);
}

INSTANTIATE_TEST_SUITE_P(Micros, TiedPipeline, ::testing::Values(1, 3, 4, 6));

}  // namespace
}  // namespace shardmark::testing
