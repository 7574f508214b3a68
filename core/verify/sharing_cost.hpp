#pragma once
// What sharing (ZeRO) must cost a rank: traffic and bytes kept, against closed forms.

#include <vector>

#include "verify/candidate.hpp"
#include "verify/count.hpp"

namespace shardmark {

/// Of a schedule whose ranks share nothing, or leave all of it to rank 0 (root_cost.hpp): no counts.
void count_sharing(Candidate& candidate, std::vector<Count>& out);

}  // namespace shardmark
