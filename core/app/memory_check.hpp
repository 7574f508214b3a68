#pragma once

#include "run/job.hpp"

namespace shardmark {

/// Refuses a job whose training needs more memory than this machine has left, rather than let the kernel kill ranks in the middle.
/// @throws BadRequest
void require_memory(Job const& job, int ranks_here);

}  // namespace shardmark
