#include "schedule/simulate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "schedule/replay.hpp"

namespace shardmark {

double ChunkSeconds::of(Action const& action) const {
  switch (action.what) {
    case Do::forward:
      return forward;
    case Do::recompute:
      return action.keeps == Kept::selective ? selective : recompute;
    case Do::backward:
      return input + weight;
    case Do::backward_input:
      return input;
    case Do::backward_weight:
      return weight;
    default:
      return 0;
  }
}

double AlphaBeta::collective_seconds(Collective what, double bytes, int ranks) const {
  switch (what) {
    case Collective::all_reduce:
      return all_reduce_seconds(bytes, ranks);
    case Collective::broadcast:  // a chain
      return message_seconds(bytes);
    case Collective::gather:
    case Collective::scatter:  // the root's
      return (ranks - 1) * message_seconds(bytes);
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return all_reduce_seconds(bytes, ranks) / 2;  // an all-reduce is one and the other
  }
  return 0;
}

ChunkSeconds seconds_of(BlockShape const& block) {
  return {block.forward_cost, block.input_cost, block.weight_cost, block.forward_cost, block.selective_cost};
}

Costs costs_of(std::vector<ChunkSeconds> chunks, LinkCosts traffic) {
  Costs costs;
  costs.action = [chunks = std::move(chunks)](Action const& action, int) {
    return action.chunk.valid() ? chunks.at(std::size_t(action.chunk.v)).of(action) : 0.0;
  };
  costs.transfer = [traffic = std::move(traffic)](Posting const& posting, Schedule const& schedule) {
    if (posting.transfer != Transfer::collective) {
      bool const known = std::size_t(posting.edge.v) < traffic.edge_bytes.size();
      return traffic.link.message_seconds(known ? traffic.edge_bytes[std::size_t(posting.edge.v)] : 0.0);
    }
    if (!posting.group.empty() || traffic.replicas == 1) return 0.0;
    double const bytes = double(elements_of(posting, schedule)) * traffic.element_bytes;
    return traffic.link.collective_seconds(posting.what, bytes, traffic.replicas);
  };
  return costs;
}

double Timeline::lane_idle() const { return std::ranges::max(lanes, {}, &LaneSeconds::lane_idle).lane_idle; }
double Timeline::barrier_idle() const { return std::ranges::max(lanes, {}, &LaneSeconds::barrier_idle).barrier_idle; }
double Timeline::exposed() const { return std::ranges::max(lanes, {}, &LaneSeconds::exposed).exposed; }

Timeline simulate(Schedule const& schedule, Costs const& costs, int windows) {
  expect(windows >= 1, "there is nothing to simulate without a repetition");
  expect(costs.action && costs.transfer, "a simulation needs the costs of actions and transfers");
  Unrolled const unrolled(schedule, windows);
  require_known_ids(unrolled);
  return Replay(unrolled, CommunicationModel::rendezvous, &costs).run();
}

double window_seconds(Schedule const& schedule, Costs const& costs) {
  if (schedule.synchronous()) return simulate(schedule, costs).makespan;
  // Start-up and drain are over after as many windows as there are lanes.
  int const full = int(schedule.lanes.size()), more = full + 4;
  return (simulate(schedule, costs, more).makespan - simulate(schedule, costs, full).makespan) / (more - full);
}

}  // namespace shardmark
