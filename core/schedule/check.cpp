#include "schedule/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/lane_check.hpp"
#include "schedule/replay.hpp"

namespace shardmark {
namespace {

void require(bool good, std::string const& problem) {
  if (!good) throw BadSchedule(problem);
}

void require_consistent(Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  int const lanes = int(schedule.lanes.size());
  require(lanes > 0 && !schedule.lane_of_chunk.empty(), "a schedule needs lanes and chunks");
  for (int lane : schedule.lane_of_chunk) require(lane >= 0 && lane < lanes, fmt::format("a chunk is on lane {} of {}", lane, lanes));
  require(schedule.form == Form::coarse || blocks.size() == schedule.lane_of_chunk.size(),
          fmt::format("{} blocks, but the schedule has {}", blocks.size(), schedule.lane_of_chunk.size()));
  require(schedule.buckets.empty() || int(schedule.buckets.size()) == lanes, "every lane needs a list of buckets");
  int const micros = schedule.micros_per_window, updates = schedule.versions_per_window;
  require(micros > 0 && updates > 0 && micros % updates == 0,
          fmt::format("{} updates can't share {} micro-batches equally", updates, micros));
  require(schedule.decisions == Decisions::joint || lanes == 1 || !schedule.synchronous(), "lanes that flush decide jointly");
  require(schedule.leaves.leaves() == schedule.micros_per_update(),
          fmt::format("a sum of {} leaves, but {} micro-batches an update", schedule.leaves.leaves(), schedule.micros_per_update()));
}

}  // namespace

std::span<CommunicationModel const> models_of(Matching matching) {
  return std::span(communication_models).first(matching == Matching::by_launch_order ? 3 : 2);
}

Proof check(Schedule const& schedule, std::vector<BlockShape> const& blocks, int windows, std::span<CommunicationModel const> models) {
  require_consistent(schedule, blocks);
  Proof proof;
  proof.windows_checked = windows > 0 ? windows : int(schedule.lanes.size()) + 2;
  Unrolled const unrolled(schedule, proof.windows_checked);
  require_known_ids(unrolled);
  std::vector<TiedUnit> const tied = schedule.form == Form::coarse ? std::vector<TiedUnit>{} : tied_units(blocks, schedule.lane_of_chunk);
  for (int lane = 0; lane < unrolled.lanes(); ++lane) {
    LaneContents const contents(schedule, blocks, tied, lane);
    check_lane(unrolled, contents, lane);
    proof.lanes.push_back(measure_lane(unrolled, contents, lane));
  }
  if (schedule.form == Form::lowered) {
    if (models.empty()) models = models_of(schedule.matching);
    for (CommunicationModel model : models) Replay(unrolled, model, nullptr).run();
    proof.models.assign(models.begin(), models.end());
  } else {
    Replay(unrolled, CommunicationModel::rendezvous, nullptr).run();
  }
  return proof;
}

}  // namespace shardmark
