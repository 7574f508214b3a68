#pragma once
// Faults on purpose that only pipelines have.

#include "base/mutant.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {

/// mutant(name), but for schedules of one lane: a pipeline's serial twin runs the same executor and stays right.
inline bool pipeline_mutant(Schedule const& schedule, std::string_view name) { return schedule.lanes.size() > 1 && mutant(name); }

}  // namespace shardmark
