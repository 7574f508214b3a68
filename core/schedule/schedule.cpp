#include "schedule/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"

namespace shardmark {
namespace {

bool has_version(Do what) {
  switch (what) {
    case Do::forward:
    case Do::backward:
    case Do::backward_input:
    case Do::backward_weight:
    case Do::recompute:
    case Do::tie:
    case Do::decide:
    case Do::update:
      return true;
    case Do::reduce:
    case Do::fold:
    case Do::post:
    case Do::wait:
    case Do::release:
      return false;
  }
  return false;
}

}  // namespace

std::vector<Action>& Lane::operator[](Section section) {
  return section == Section::prologue ? prologue : section == Section::body ? body : epilogue;
}

std::vector<Action> const& Lane::operator[](Section section) const {
  return section == Section::prologue ? prologue : section == Section::body ? body : epilogue;
}

bool Schedule::synchronous() const {
  return std::all_of(lanes.begin(), lanes.end(), [](Lane const& lane) { return lane.prologue.empty() && lane.epilogue.empty(); });
}

Action shifted(Action action, Schedule const& schedule, int windows) {
  if (action.micro.valid()) action.micro.v += windows * schedule.micros_per_window;
  if (has_version(action.what)) action.version.v = std::max(0, action.version.v + windows * schedule.versions_per_window);
  return action;
}

Collective sum_of(Sharing sharing) {
  if (sharing == Sharing::replicated) return Collective::all_reduce;
  return sharing == Sharing::root ? Collective::gather : Collective::reduce_scatter;
}

Collective gather_of(Sharing sharing) { return sharing == Sharing::root ? Collective::broadcast : Collective::all_gather; }

std::int64_t elements_of(Posting const& posting, Schedule const& schedule) {
  std::int64_t elements = 0;  // of the largest such bucket: the posting doesn't say whose lane it is
  for (std::vector<Bucket> const& lane : schedule.buckets)
    for (Bucket const& bucket : lane) {
      if (!posting.unit.valid() && bucket.id == posting.bucket) elements = std::max(elements, bucket.elements);
      for (std::size_t i = 0; i < bucket.segments.size(); ++i)
        if (posting.unit.valid() && bucket.segments[i].unit == posting.unit) elements = bucket.elements_of_segment[i];
    }
  return elements;
}

std::span<Posting const> postings_of(Lane const& lane, Token token) {
  auto const found = std::ranges::equal_range(lane.postings, token, {}, &Posting::token);
  return {found.begin(), found.end()};
}

std::vector<int> TiedUnit::holders() const {
  std::set<int> const distinct(lane_of_slot.begin(), lane_of_slot.end());
  return {distinct.begin(), distinct.end()};
}

int TiedUnit::slots_per_holder() const {
  std::ptrdiff_t most = 0;
  for (int lane : lane_of_slot) most = std::max(most, std::count(lane_of_slot.begin(), lane_of_slot.end(), lane));
  return int(most);
}

bool TiedUnit::on(int lane) const { return std::find(lane_of_slot.begin(), lane_of_slot.end(), lane) != lane_of_slot.end(); }

std::vector<TiedUnit> tied_units(std::vector<BlockShape> const& blocks, std::vector<int> const& lane_of_block) {
  expect(blocks.size() == lane_of_block.size(), "one lane for each block");
  std::map<UnitId, std::map<int, int>> lane_of;  // unit -> slot -> lane
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (Segment const& segment : blocks[b].produces) {
      bool const fresh = lane_of[segment.unit].emplace(segment.slot, lane_of_block[b]).second;
      expect(fresh, "two blocks produce one gradient segment; each use of a unit needs its own slot");
    }
  }
  std::vector<TiedUnit> tied;
  for (auto const& [unit, slots] : lane_of) {
    if (slots.size() < 2) continue;
    TiedUnit& next = tied.emplace_back(TiedUnit{unit, {}});
    for (auto const& [slot, lane] : slots) {
      expect(slot == int(next.lane_of_slot.size()), "the slots of a tied unit count from 0 without gaps");
      next.lane_of_slot.push_back(lane);
    }
  }
  return tied;
}

std::vector<UnitId> units_of_lane(std::vector<BlockShape> const& blocks, std::vector<int> const& lane_of_block, int lane) {
  expect(blocks.size() == lane_of_block.size(), "one lane for each block");
  std::set<UnitId> units;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (lane_of_block[b] != lane) continue;
    for (Segment const& segment : blocks[b].produces) units.insert(segment.unit);
  }
  return {units.begin(), units.end()};
}

std::string tied_group(UnitId unit) { return "tied:" + std::to_string(unit.v); }

}  // namespace shardmark
