#include <algorithm>
#include <utility>

#include "schedule/lane_check.hpp"

namespace shardmark {
namespace {

void measure_live(Unrolled const& unrolled, LaneContents const& contents, int lane, LaneFacts& facts) {
  std::vector<char> input_kept(contents.chunks.size() * std::size_t(unrolled.micros()), 0);
  int stashes = 0, boundaries = 0, residues = 0;
  auto const runs = [&](Action const& action) {
    char& had = input_kept[contents.local[std::size_t(action.chunk.v)] * std::size_t(unrolled.micros()) + std::size_t(action.micro.v)];
    char const has = action.keeps == Kept::input ? 1 : 0;
    boundaries += has - std::exchange(had, has);
    bool const completes = action.what == Do::recompute && action.keeps == Kept::selective;
    if (!completes && (action.keeps == Kept::stash || action.keeps == Kept::selective)) ++stashes;
  };
  for (Step const& step : unrolled.lane(lane)) {
    switch (step.action.what) {
      case Do::forward:
      case Do::recompute:
        runs(step.action);
        break;
      case Do::backward:
        --stashes;
        break;
      case Do::backward_input:
        --stashes;
        ++residues;
        break;
      case Do::backward_weight:
        --residues;
        break;
      default:
        break;
    }
    facts.peak_stashes = std::max(facts.peak_stashes, stashes);
    facts.peak_boundary_inputs = std::max(facts.peak_boundary_inputs, boundaries);
    facts.peak_weight_residues = std::max(facts.peak_weight_residues, residues);
    facts.peak_held = std::max(facts.peak_held, stashes + residues);
  }
}

bool reads_weights(Do what) {
  return what == Do::forward || what == Do::recompute || what == Do::backward || what == Do::backward_input || what == Do::backward_weight;
}

/// A version lives from the update that makes it until it is neither the latest nor read any more.
void measure_versions(Unrolled const& unrolled, int lane, LaneFacts& facts) {
  std::vector<Step> const& steps = unrolled.lane(lane);
  Do const maker = unrolled.schedule().form == Form::coarse ? Do::update : Do::decide;
  std::vector<std::size_t> last_read(std::size_t(unrolled.micros() / unrolled.schedule().micros_per_update()) + 1, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (reads_weights(steps[i].action.what)) last_read[std::size_t(steps[i].action.version.v)] = i;
  }
  int alive = 1, latest = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Action const& action = steps[i].action;
    if (action.what == maker) {
      bool const replaced = last_read[std::size_t(latest)] <= i;
      alive += replaced ? 0 : 1;
      latest = action.version.v;
    } else if (reads_weights(action.what)) {
      if (action.what == Do::backward || action.what == Do::backward_input) {
        int const update = action.micro.v / unrolled.schedule().micros_per_update();
        facts.staleness = std::max(facts.staleness, update - action.version.v);
      }
      if (action.version.v != latest && last_read[std::size_t(action.version.v)] == i) --alive;
    }
    facts.peak_versions = std::max(facts.peak_versions, alive);
  }
}

/// From the first gradient of an update to the units' updates, which stand right behind the decision.
void measure_gradients(Unrolled const& unrolled, int lane, LaneFacts& facts) {
  bool const coarse = unrolled.schedule().form == Form::coarse;
  int decided = 0;
  for (Step const& step : unrolled.lane(lane)) {
    Do const what = step.action.what;
    if (what == (coarse ? Do::update : Do::decide)) ++decided;
    if (what != Do::backward && what != Do::backward_weight) continue;
    facts.peak_gradients = std::max(facts.peak_gradients, step.action.micro.v / unrolled.schedule().micros_per_update() + 1 - decided);
  }
}

void count_postings(Unrolled const& unrolled, int lane, LaneFacts& facts) {
  for (Action const& action : unrolled.schedule().lanes[std::size_t(lane)].body) {
    if (action.what != Do::post) continue;
    for (Posting const& posting : unrolled.postings(lane, action.token)) {
      ++(posting.transfer == Transfer::send ? facts.sends : posting.transfer == Transfer::receive ? facts.receives : facts.collectives);
    }
  }
}

}  // namespace

LaneFacts measure_lane(Unrolled const& unrolled, LaneContents const& contents, int lane) {
  LaneFacts facts;
  measure_live(unrolled, contents, lane, facts);
  measure_versions(unrolled, lane, facts);
  measure_gradients(unrolled, lane, facts);
  count_postings(unrolled, lane, facts);
  return facts;
}

}  // namespace shardmark
