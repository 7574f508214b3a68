#pragma once
// Who sends how much for which purpose, by axis of the mesh, beside the formula.

#include <string>

#include "app/strategy.hpp"
#include "run/job.hpp"

namespace shardmark {

/// "data", "tensor", "data+pipeline"; "-" off the mesh.
std::string axes_name(Axes axes);
/// What a formula says that a rank sends per global batch for what one row of a dry run counts; absent: no formula is known.
std::optional<double> formula_bytes(DryRun::Traffic const& row, Job const& job, Prediction const& prediction);
/// Per global batch, of rank `rank`: a row for each axis and purpose.
std::string traffic_table(DryRun const& counted, Job const& job, Prediction const& prediction, int rank);

}  // namespace shardmark
