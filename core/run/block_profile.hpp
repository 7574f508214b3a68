#pragma once
// What each block of a rank takes in memory and work, found by dry runs: what plans of recomputation are made from.

#include <vector>

#include "run/job.hpp"
#include "schedule/chain_plans.hpp"

namespace shardmark {

/// All blocks of the model, with the job's largest micro-batch; forward_seconds are flops. Bytes are booked as activations.
/// @param job its schedule isn't looked at
std::vector<ChainBlock> profile_blocks(Job const& job);

}  // namespace shardmark
