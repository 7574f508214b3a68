// Faults that make replicas and accumulation differ: the comparison of both ways names what.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/mutant.hpp"
#include "validation/equivalence/accumulation/both_ways.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

class BothWaysMutant : public ::testing::TestWithParam<char const*> {
 protected:
  ~BothWaysMutant() override { choose_mutant(""); }
};

/// Each acts on several ranks alone, so one process stays right.
TEST_P(BothWaysMutant, is_killed_by_the_gradients) {
  Options options = small_gpt(9);
  options.tied_embeddings = false;
  ASSERT_TRUE(failed(both_ways(options, 4)).empty()) << "without the fault";
  choose_mutant(GetParam());
  auto const found = failed(both_ways(options, 4));
  EXPECT_NE(std::find(found.begin(), found.end(), "gradient of each update"), found.end()) << GetParam() << " survived";
}

INSTANTIATE_TEST_SUITE_P(All, BothWaysMutant, ::testing::Values("ring_for_tree", "skip_reduction", "local_denominator", "divide_twice"),
                         [](auto const& of) { return std::string(of.param); });

}  // namespace
}  // namespace shardmark::testing
