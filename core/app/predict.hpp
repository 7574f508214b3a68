#pragma once
// Predictions for a run, made from probes and formulas before the steps that they are compared with (docs/method.md, basis "probe").

#include <string_view>

#include "app/strategy.hpp"
#include "run/job.hpp"

namespace shardmark {

/// Rates of this rank in this job, measured before the loop. Unit: per second.
struct Probe {
  double matmul_flops_per_second = 0;
  double bytes_per_second = 0;             // of passes over memory (a copy, read + write)
  double all_reduce_alpha_seconds = 0;     // of the smallest all-reduce over the replicas
  double all_reduce_bytes_per_second = 0;  // bus bandwidth, 2 (n-1)/n counted, at the size of the largest bucket
};
/// Takes a few hundred milliseconds; collective over the mesh's data axis. Uses memory of the rig's backend, not its arena.
Probe run_probe(Job const& job, Backend& ops, Communicator& replicas);

struct StepPrediction {
  double compute_seconds = 0;  // each kind of operation at the matmul rate or the memory rate, whichever takes longer
  double exposed_seconds = 0;  // communication that a replay of the schedule can't hide
  double bubble_fraction = 0;
  double step_seconds() const { return compute_seconds + exposed_seconds; }
};
/// Whether operations of this kind run at the rate of products.
bool is_product(std::string_view kind);
StepPrediction predict_step(Job const& job, DryRun const& plan, Probe const& probe);

}  // namespace shardmark
