#pragma once
// What the centralised way must cost: what rank 0 hands out, and has alone.

#include <vector>

#include "verify/candidate.hpp"
#include "verify/count.hpp"

namespace shardmark {

/// Of a job in which nothing is handed out: no counts.
void count_root(Candidate& candidate, std::vector<Count>& out);
/// Bytes of one rank's samples in a global batch: for each micro-batch a head of 40 bytes, and for each sample of the largest piece its two
/// ids of 8 bytes, input and target; rounded up to 64.
double bytes_of_samples(Job const& job);

}  // namespace shardmark
