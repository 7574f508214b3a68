// What GPipe and 1F1B keep, stage by stage, as predicted: M micro-batches against min(M, p - s).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "strategies/gpipe/gpipe.hpp"
#include "strategies/pipedream/pipedream.hpp"
#include "validation/equivalence/ddp/rigs.hpp"

namespace shardmark::testing {
namespace {

constexpr int stages = 4;

/// Micro-batches of two sequences; twelve blocks a stage, so that what waits at its ends weighs little.
Job job_of(Strategy const& strategy, int micros) {
  Options o;
  o.layers = 46;
  o.hidden = 16;
  o.heads = 2;
  o.seq = 16;
  o.vocab = 40;
  o.batch = 2 * micros;
  o.micros = micros;
  o.balance = "12,12,12,12";
  o.data = "synthetic";
  o.recompute = "none";
  o.deterministic = true;
  return build_job(o, strategy, stages, DType::f32, JobPurpose::training, build_dataset(o, 1, JobPurpose::training));
}

/// Peak bytes of activations of each stage, which plan must have said within 2 %.
std::vector<double> measured(Strategy const& strategy, int micros) {
  Job const job = job_of(strategy, micros);
  std::vector<double> out(stages);
  on_ranks(job, [&](Rig& rig, int rank) {
    rig.program().advance(2);
    rig.program().drain();
    DryRun const plan = dry_run(job, rank);
    double const activations = double(rig.ledger().peak(Book::activations));
    EXPECT_NEAR(activations, double(plan.peak[std::size_t(Book::activations)]), 0.02 * activations) << "rank " << rank;
    EXPECT_NEAR(double(rig.ledger().peak_total()), double(plan.peak_total), 0.02 * double(plan.peak_total)) << "rank " << rank;
    out[std::size_t(rank)] = activations;
  });
  return out;
}

TEST(PipelineMemory, gpipe_keeps_all_micro_batches_and_1f1b_as_many_as_stages_follow) {
  constexpr int micros = 8;
  // What one more micro-batch costs a stage, and what it needs besides.
  auto const one = measured(*make_gpipe(), 1), three = measured(*make_gpipe(), 3);
  auto const gpipe = measured(*make_gpipe(), micros), flush = measured(*make_pipedream(), micros);
  for (int s = 0; s < stages; ++s) {
    auto const at = std::size_t(s);
    double const each = (three[at] - one[at]) / 2, besides = one[at] - each;
    EXPECT_NEAR((gpipe[at] - besides) / each, micros, 0.02 * micros) << "stage " << s;
    EXPECT_NEAR((flush[at] - besides) / each, stages - s, 0.02 * (stages - s)) << "stage " << s;
    fmt::print("stage {}: {:.0f} bytes a micro-batch, {:.0f} besides; gpipe {:.0f}, 1f1b {:.0f}\n", s, each, besides, gpipe[at], flush[at]);
  }
}

}  // namespace
}  // namespace shardmark::testing
