// The centralised way is ddp with everything on rank 0: the same bits, another distribution of work, memory and traffic.

#include <gtest/gtest.h>

#include <limits>

#include "app/hooks.hpp"
#include "app/rank_shares.hpp"
#include "validation/equivalence/dp/jobs.hpp"

namespace shardmark::testing {
namespace {

class Ranks : public ::testing::TestWithParam<int> {};

/// More ranks than samples too.
TEST_P(Ranks, have_the_weights_of_ddp) {
  for (int micros : {1, 2}) {
    Options options = small_dp(5, micros);
    if (micros > (5 + GetParam() - 1) / GetParam()) continue;
    options.optimizer = OptimizerKind::adamw;
    options.lr = 1e-2;
    options.clip_norm = 0.5;
    auto const central = weights_after(dp_job(options, GetParam()), 5), spread = weights_after(ddp_job(options, GetParam()), 5);
    for (auto const& weights : central) EXPECT_EQ(weights, spread.front()) << micros;
  }
}

TEST_P(Ranks, are_verified) {
  Options options = small_dp(9, 1);
  options.optimizer = OptimizerKind::adamw;
  Verification const found = prove_dp(options, GetParam());
  EXPECT_EQ(found.verdict, Verdict::verified) << table(found);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, ::testing::Values(1, 2, 3, 4, 7));

/// Case 26: the one that decides isn't the one that has the NaN.
TEST(Dp, a_nan_on_a_worker_is_skipped_everywhere) {
  Options options = small_dp(6);
  options.tied_embeddings = false;
  Job const job = dp_job(options, 3);
  std::vector<std::unique_ptr<InjectHook>> faults;
  std::vector<Hook*> hooks;
  for (int r = 0; r < 3; ++r) {
    faults.push_back(std::make_unique<InjectHook>(Fault{.kind = Fault::Kind::nan, .rank = 2, .step = 2, .tensor = ""}, r));
    hooks.push_back(faults.back().get());
  }
  on_ranks(
      job,
      [&](Rig& rig, int rank) {
        std::vector<double> before;
        for (int update = 1; update <= 3; ++update) {
          rig.program().advance(1);
          EXPECT_EQ(rig.program().last().skipped, update == 2) << rank;
          if (update == 2) {
            EXPECT_EQ(used_weights(rig.program()), before) << rank;
          }
          before = used_weights(rig.program());
        }
        rig.program().drain();
      },
      hooks);
}

/// What rank 0 has n times, or alone.
TEST(Dp, rank_0_holds_and_moves_what_the_formula_says) {
  Options options = small_dp(6);
  options.optimizer = OptimizerKind::adamw;
  for (DType dtype : {DType::f32, DType::bf16}) {
    Job const job = dp_job(options, 3, dtype);
    std::int64_t const parameters = job.model->spec.elements();
    DryRun const root = dry_run(job, 0), worker = dry_run(job, 1), last = dry_run(job, 2);
    auto const least = [&](int tensors) { return std::int64_t(64 * tensors) * std::int64_t(job.model->spec.units.size()); };
    auto const of = [](DryRun const& plan, Book book) { return plan.peak[std::size_t(book)]; };
    EXPECT_GE(of(root, Book::optimizer), 8 * parameters);
    EXPECT_LE(of(worker, Book::optimizer), least(2));
    std::int64_t const masters = dtype == DType::bf16 ? 4 * parameters : 0;
    EXPECT_NEAR(double(of(root, Book::parameters) - of(worker, Book::parameters)), double(masters), double(least(1)));
    EXPECT_GE(of(root, Book::communication) - of(worker, Book::communication), 3 * 4 * parameters);  // n gradients
    for (auto const& [rank, plan] : {std::pair{0, &root}, {1, &worker}, {2, &last}}) {
      Volume const counted = counted_volume(*plan), formula = formula_volume(job, rank);
      EXPECT_EQ(counted.sent, formula.sent) << rank;
      EXPECT_EQ(counted.received, formula.received) << rank;
    }
  }
}

TEST(Dp, a_schedule_that_sends_weights_before_their_update_is_refused) {
  Job const job = dp_job(small_dp(6), 3);
  auto const blocks = job.model->shapes();
  Schedule early = job.schedule;
  auto& body = early.lanes.front().body;
  auto const update = std::find_if(body.begin(), body.end(), [](Action const& a) { return a.what == Do::update; });
  std::iter_swap(update, update + 1);  // with the post of its weights
  EXPECT_NO_THROW(check(job.schedule, blocks));
  EXPECT_THROW(check(early, blocks), BadSchedule);
}

TEST(Dp, a_schedule_that_reduces_instead_of_gathering_is_refused) {
  Job const job = dp_job(small_dp(6), 3);
  Schedule other = job.schedule;
  for (Posting& posting : other.lanes.front().postings)
    if (posting.what == Collective::gather) posting.what = Collective::all_reduce;
  EXPECT_THROW(check(other, job.model->shapes()), BadSchedule);
}

}  // namespace
}  // namespace shardmark::testing
