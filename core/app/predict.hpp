#pragma once
// Predictions for a run, made from probes and formulas before the steps that they are compared with (docs/method.md, basis "probe").

#include <span>
#include <string_view>

#include "app/strategy.hpp"
#include "run/job.hpp"
#include "schedule/simulate.hpp"

namespace shardmark {

/// Rates of this rank in this job, measured before the loop. Unit: per second.
struct Probe {
  double matmul_flops_per_second = 0;
  double bytes_per_second = 0;             // of passes over memory (a copy, read + write)
  double all_reduce_alpha_seconds = 0;     // of the smallest all-reduce over the replicas, or the tensor-parallel ranks
  AlphaBeta message = {0, 1};              // between neighbouring stages
  double all_reduce_bytes_per_second = 0;  // bus bandwidth, 2 (n-1)/n counted, at the size of the largest bucket or output
};
/// The axis over which run_probe() times all-reduces: tensor where layers are cut, else data.
Axes probed_axes(Job const& job);
/// Takes a few hundred milliseconds; collective over the mesh's probed axis. Uses memory of the rig's backend, not its arena.
Probe run_probe(Job const& job, Backend& ops, Communicator& group);

struct StepPrediction {
  double compute_seconds = 0;  // of the busiest lane
  double exposed_seconds = 0;  // communication that a replay of the schedule can't hide
  double bubble_fraction = 0;
  double step_seconds = 0;
};
/// Whether operations of this kind run at the rate of products.
bool is_product(std::string_view kind);
/// What a rank computes in a step: each kind of operation at the matmul rate or the memory rate, whichever takes longer.
double compute_seconds(DryRun const& plan, Probe const& probe);
/// What its layers exchange over the tensor axis meanwhile, which nothing hides.
double exchange_seconds(DryRun const& plan, Probe const& probe);
/// What takes every lane's time, from every rank's own. Collective over the pipeline.
std::vector<double> seconds_of_lanes(Mesh& mesh, double mine);
/// Of each action and message of the job's schedule, in seconds; refers to the job.
/// @param seconds_of_lane compute_seconds() + exchange_seconds() of each lane of the schedule
Costs predicted_costs(Job const& job, std::span<double const> seconds_of_lane, Probe const& probe);
StepPrediction predict_step(Job const& job, std::span<double const> seconds_of_lane, Probe const& probe);

}  // namespace shardmark
