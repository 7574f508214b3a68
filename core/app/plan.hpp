#pragma once
// The parts of `plan`.

#include <string>
#include <vector>

#include "app/predict.hpp"
#include "app/strategy.hpp"
#include "run/job.hpp"
#include "schedule/check.hpp"

namespace shardmark {

struct Plan {
  Job job;
  Schedule drawn;  // what `job` runs, before it is refined to blocks
  Proof proof, drawn_proof;
  Prediction prediction;
  std::vector<DryRun> ranks;
  Probe probe;
  std::vector<double> seconds_of_lane;
  StepPrediction step;
};
/// Needs no MPI; takes as long as the probes of this machine. @throws BadRequest
Plan make_plan(Options const& options, Strategy const& strategy, int ranks);

/// A row a stage: its blocks, what is alive at once, weight versions, staleness and messages, each beside its closed form.
std::string stage_rows(Plan const& plan);

/// --compare: all pipelines with as many ranks and micro-batches, for stages that share the model's work equally.
std::string pipelines_table(Options const& options, Strategy const& strategy, int ranks);

/// --out, --svg and --trace, as far as they are asked for.
void require_plan_files(Options const& options);
void write_plan_files(Plan const& plan, Options const& options);

}  // namespace shardmark
