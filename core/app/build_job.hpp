#pragma once
// From options to a job: model, data, schedule.

#include <memory>

#include "app/options.hpp"
#include "app/recompute_budget.hpp"
#include "app/strategy.hpp"
#include "model/zoo.hpp"
#include "run/job.hpp"

namespace shardmark {

/// What a job is for: training on data, or proving on data that hide nothing (ragged counts, random biases and gains, short last updates).
enum class JobPurpose : std::uint8_t { training, proof };

/// @param sample the data set's; it decides the width and the classes of an mlp
std::shared_ptr<Model const> build_model(Options const& options, SampleShape const& sample, DType dtype, JobPurpose purpose,
                                         TensorPart part = {});
std::shared_ptr<Dataset const> build_dataset(Options const& options, int replicas, JobPurpose purpose);
/// The part of the data that training doesn't see. @throws BadRequest when there is none.
std::shared_ptr<Dataset const> build_held_out(Options const& options);
OptimizerSettings optimizer_settings(Options const& options, UpdateOf update);

/// @throws BadRequest, BadSchedule: the schedule has passed the checker when this returns
Job build_job(Options const& options, Strategy const& strategy, int ranks, DType dtype, JobPurpose purpose,
              std::shared_ptr<Dataset const> data);

/// What --recompute budget chooses from, on each stage. @throws BadRequest
std::vector<StagePlans> budget_choices(Options const& options, Strategy const& strategy, Job const& job, int ranks);

/// The same mesh, schedule, communicator and algorithms with a small model that has a block for each of `chunks`, for the proof in `bench`
/// (docs/method.md), and three heads for each of `parts` tensor-parallel ranks.
Options reduced_twin(Options options, int chunks, int parts = 1);

std::unique_ptr<Backend> build_backend(Options const& options, Determinism determinism);

}  // namespace shardmark
