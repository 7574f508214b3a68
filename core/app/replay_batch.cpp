#include "app/replay_batch.hpp"

namespace shardmark {

Replay replay(Job const& job, Costs const& costs) {
  int const windows = job.updates_per_batch(), filled = int(job.schedule.lanes.size());
  bool const flushes = job.schedule.synchronous();
  Timeline const last = simulate(job.schedule, costs, flushes ? windows : filled + windows);
  Replay out{last.makespan, last.exposed(), {}};
  for (LaneSeconds const& lane : last.lanes) out.busy.push_back(lane.busy);
  if (flushes) return out;
  // Without a flush: what the last windows add to a pipeline that is full.
  Timeline const first = simulate(job.schedule, costs, filled);
  out.seconds -= first.makespan;
  out.exposed -= first.exposed();
  for (std::size_t lane = 0; lane < out.busy.size(); ++lane) out.busy[lane] -= first.lanes[lane].busy;
  return out;
}

double boundary_bytes(Job const& job, ChunkId edge) {
  double elements = double(piece_of(piece_of(job.global_batch, job.replicas, 0).size(), job.micros, 0).size());
  for (std::int64_t d : job.model->blocks[std::size_t(edge.v) - 1].boundary) elements *= double(d);
  return elements * double(width(job.model->dtype));
}

Sent sent_by_formula(Job const& job, int lane) {
  auto const& lanes = job.schedule.lane_of_chunk;
  Sent out;
  for (std::size_t edge = 1; edge < lanes.size(); ++edge) {
    if (lanes[edge - 1] == lanes[edge] || (lanes[edge - 1] != lane && lanes[edge] != lane)) continue;
    std::int64_t elements = job.global_batch;
    for (std::int64_t extent : job.model->blocks[edge - 1].boundary) elements *= extent;
    out.messages += job.micros;
    out.bytes += elements * std::int64_t(width(job.model->dtype));
  }
  return out;
}

}  // namespace shardmark
