#pragma once
// What layers exchange over the tensor axis, against closed forms.

#include <vector>

#include "schedule/traffic_forms.hpp"
#include "verify/candidate.hpp"
#include "verify/count.hpp"

namespace shardmark {

/// Calls, bytes of arrays and bytes sent for each purpose, over all steps; what has no form must not occur.
void count_traffic(Candidate& candidate, std::vector<TrafficForm> const& forms, std::vector<Count>& out);

}  // namespace shardmark
