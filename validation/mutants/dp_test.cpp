// Faults of the centralised way, each killed by the check that its row names.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/mutant.hpp"
#include "validation/equivalence/dp/jobs.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

struct Fault {
  std::string name, part, tensor;
  friend std::ostream& operator<<(std::ostream& out, Fault const& f) { return out << f.name; }
};

class DpMutant : public ::testing::TestWithParam<Fault> {
 protected:
  ~DpMutant() override { choose_mutant(""); }
};

TEST_P(DpMutant, is_killed_by_the_check_that_its_row_names) {
  Options options = small_dp(9);
  options.tied_embeddings = false;
  ASSERT_EQ(prove_dp(options, 3).verdict, Verdict::verified) << "without the fault";
  choose_mutant(GetParam().name);
  Verification const found = prove_dp(options, 3);
  EXPECT_EQ(found.verdict, Verdict::failed);
  bool const named = std::any_of(found.checks.begin(), found.checks.end(), [](Check const& c) {
    return c.verdict == Verdict::failed && c.part == GetParam().part && c.tensor == GetParam().tensor;
  });
  EXPECT_TRUE(named) << table(found);
}

std::vector<Fault> const faults{
    {"root_drops_last_rank", "fp64 gate", "gradient of lm_head.weight"},
    {"worker_updates_too", "fp32 cost", "replicas with other weights"},
    {"root_sends_old_weights", "fp32 cost", "replicas with other weights"},
    {"root_sends_twice", "fp32 cost", "bytes of weights per update"},
    {"samples_scattered_twice", "fp32 cost", "bytes of samples per update"},
    {"unused_state_kept", "fp32 cost", "bytes of optimizer state"},
};
INSTANTIATE_TEST_SUITE_P(All, DpMutant, ::testing::ValuesIn(faults), [](auto const& of) { return of.param.name; });

}  // namespace
}  // namespace shardmark::testing
