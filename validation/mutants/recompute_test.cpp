// Faults in recomputation, which only bits or state can show: gradients of a run with another dropout mask look healthy.

#include <gtest/gtest.h>

#include "base/mutant.hpp"
#include "validation/equivalence/core/training.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

Outcome run(Schedule const& coarse, std::string const& mutant_name) {
  choose_mutant(mutant_name);
  Outcome out = train({.coarse = coarse, .first_block = {0, 4}, .optimizer = {.rate = {.base = 0.1}}, .cut = {.micros = 3}});
  choose_mutant("");
  return out;
}

TEST(RecomputeMutants, case_17_a_new_mask_is_seen) {
  Schedule const keeps = plan_sequential("serial", 3), recomputes = test::with_recomputation(keeps);
  Outcome const want = run(keeps, "");
  expect_equal(run(recomputes, ""), want);
  EXPECT_NE(run(recomputes, "recompute_new_mask").weights, want.weights);
}

// Its input needs no gradient, its weights do.
TEST(RecomputeMutants, case_55_a_recomputed_first_block_is_trained) {
  Schedule const keeps = plan_sequential("serial", 3), recomputes = test::with_recomputation(keeps);
  Outcome const want = run(keeps, ""), spoiled = run(recomputes, "recomputed_first_block_untrained");
  EXPECT_EQ(run(keeps, "recomputed_first_block_untrained").weights, want.weights) << "nothing is run again";
  EXPECT_NE(spoiled.weights[0], want.weights[0]);
}

TEST(RecomputeMutants, attention_that_is_run_again_in_another_way_is_seen) {
  Schedule const keeps = plan_sequential("serial", 3);
  Schedule selective = test::with_recomputation(keeps);
  for (Action& action : selective.lanes[0].body)
    if (action.what == Do::forward || action.what == Do::recompute) action.keeps = Kept::selective;
  Outcome const want = run(keeps, "");
  expect_equal(run(selective, ""), want);
  EXPECT_NE(run(selective, "recompute_attention_unscaled").weights, want.weights);
}

}  // namespace
}  // namespace shardmark::testing
