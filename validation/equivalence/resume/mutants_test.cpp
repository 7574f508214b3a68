// Faults on purpose in resuming, each seen where its row says.

#include "base/mutant.hpp"
#include "runs.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

class ResumeMutants : public ResumeTest {
 protected:
  void TearDown() override {
    choose_mutant("");
    ResumeTest::TearDown();
  }
  /// Where a run resumed with the fault first differs.
  std::string seen(std::string const& mutant) {
    Options const options = text_options();
    Job const job = job_for(options, 2);
    Shown const whole = run_leg(options, job, {.updates = 10, .from = {}, .to = {}});
    run_leg(options, job, {.updates = 6, .from = {}, .to = folder_ / "run"});
    choose_mutant(mutant);
    return difference_between(whole, run_leg(options, job, {.updates = 4, .from = folder_ / "run", .to = {}}));
  }
};

TEST_F(ResumeMutants, None) { EXPECT_EQ(seen(""), ""); }
TEST_F(ResumeMutants, case_118_EpochZerosShuffle) { EXPECT_EQ(seen("resume_with_first_shuffle"), "samples of update 7"); }
TEST_F(ResumeMutants, case_118_DropoutKeys) { EXPECT_EQ(seen("resume_with_first_dropout_keys"), "loss of update 7"); }
TEST_F(ResumeMutants, case_118_LearningRate) { EXPECT_EQ(seen("resume_with_first_learning_rate"), "learning rate of update 7"); }
TEST_F(ResumeMutants, Moments) { EXPECT_EQ(seen("resume_without_moments"), "loss of update 8"); }
TEST_F(ResumeMutants, UpdateCount) { EXPECT_EQ(seen("resume_without_update_count"), "loss of update 8"); }

}  // namespace
}  // namespace shardmark::testing
