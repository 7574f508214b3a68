#pragma once
// The parts of `bench`, also used by `shardmark compare`.

#include <optional>

#include "app/build_job.hpp"
#include "app/checkpoints.hpp"
#include "app/main.hpp"
#include "app/measure.hpp"
#include "app/predict.hpp"
#include "app/rank_shares.hpp"
#include "app/stages.hpp"
#include "record/record.hpp"

namespace shardmark {

/// What was proven about the configuration that is timed.
struct Proofs {
  record::Verdict verdict = record::Verdict::unverified;
  record::Verification verification;
  bool in_situ_fits = true;
};
/// The reduced twin, then step 1 of exactly the timed configuration against fp64. Collective.
Proofs prove_timed_configuration(RankContext const& context, std::shared_ptr<Dataset const> const& data);

struct Evaluated {
  double loss = 0, accuracy = 0;
  std::int64_t counted = 0;
};

/// Everything one timed run came to; the same on every rank but for what says "mine".
struct BenchRun {
  Job job;
  Launch launch;
  DryRun plan;  // mine
  Prediction formula;
  Probe probe;                // mine
  StepPrediction prediction;  // largest over ranks
  Measurement measured;
  std::int64_t peak_mine = 0;
  std::int64_t reductions_per_update = 0;
  std::array<std::int64_t, books> peak_by_book{};
  std::vector<double> forward_seconds;  // of each block on this rank, medians of the warm-up but for its first update; 0 without
  bool replicas_equal = true;
  std::optional<Evaluated> evaluated;
  SaveCost checkpoints;
  std::string unsaved;                          // why a checkpoint couldn't be written, on rank 0; it ended the run
  std::optional<StageReport> stages;            // of a pipeline, measured after the timed steps; needs warm-up steps
  std::optional<RankShares> shares;             // of the centralised way, over the timed steps
  std::optional<record::PhasesSeconds> phases;  // of a few updates traced after the timed ones
  bool nonfinite() const;
};
/// Times `options` on the world. Collective. `folder` takes checkpoints, on rank 0.
BenchRun time_run(RankContext const& context, std::shared_ptr<Dataset const> const& data,
                  std::optional<CheckpointFolder> folder = std::nullopt);

/// The record of a run; complete on rank 0, where `folder` files are named. Collective.
record::Record make_record(RankContext const& context, BenchRun const& run, Proofs const& proofs);
/// The parts that are known before the run: input, build, software, system.
record::Record start_record(RankContext const& context, Job const& job);

/// Says on stderr how far a loop is: a bar on a terminal, plain lines elsewhere.
class Progress {
 public:
  Progress(bool prints, std::string what, std::int64_t total);
  ~Progress();
  void step(std::int64_t done);

 private:
  bool prints_, terminal_;
  std::string what_;
  std::int64_t total_, last_ns_ = 0;
};

}  // namespace shardmark
