#pragma once
// A schedule replayed with costs, per global batch of the steady state.

#include <vector>

#include "run/job.hpp"
#include "schedule/simulate.hpp"

namespace shardmark {

struct Replay {
  double seconds = 0;
  double exposed = 0;        // largest over lanes, of the time in waits
  std::vector<double> busy;  // by lane
};
Replay replay(Job const& job, Costs const& costs);

/// Bytes that cross in front of block `edge` for the largest micro-batch.
double boundary_bytes(Job const& job, ChunkId edge);

/// What a lane sends per global batch: activations upwards, gradients downwards, each micro-batch once. Independent of the lowering.
struct Sent {
  std::int64_t messages = 0, bytes = 0;
};
Sent sent_by_formula(Job const& job, int lane);

}  // namespace shardmark
