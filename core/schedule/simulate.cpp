#include "schedule/simulate.hpp"

#include "base/error.hpp"
#include "schedule/replay.hpp"

namespace shardmark {

Timeline simulate(Schedule const& schedule, Costs const& costs, int windows) {
  expect(windows >= 1, "there is nothing to simulate without a repetition");
  expect(costs.action && costs.transfer, "a simulation needs the costs of actions and transfers");
  Unrolled const unrolled(schedule, windows);
  require_known_ids(unrolled);
  return Replay(unrolled, CommunicationModel::rendezvous, &costs).run();
}

}  // namespace shardmark
