#pragma once
// What the centralised way must cost: what rank 0 hands out, and has alone.

#include <vector>

#include "verify/candidate.hpp"
#include "verify/count.hpp"

namespace shardmark {

/// Of a job in which nothing is handed out: no counts.
void count_root(Candidate& candidate, std::vector<Count>& out);

}  // namespace shardmark
