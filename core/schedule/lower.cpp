#include "schedule/lower.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace shardmark {
namespace {

/// Holders meet at every update. In an asynchronous pipeline the last stage makes update u before the first one has the gradients
/// for it, and would wait for what depends on its own next micro-batch: a deadlock.
void refuse_shared_units(Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  auto const tied = tied_units(blocks, schedule.lane_of_chunk);
  bool const shares = std::any_of(tied.begin(), tied.end(), [](TiedUnit const& unit) { return unit.shared(); });
  require_input(!shares || schedule.synchronous(), {"weights that are tied over stages don't work in an asynchronous pipeline",
                                                    "at each update a stage would wait for gradients of a later moment",
                                                    "untie them, keep both uses on one stage, or flush the pipeline"});
}

}  // namespace

Token LaneBuilder::post(Posting posting) {
  posting.token = {int(lane_.postings.size() == 0 ? 0 : lane_.postings.back().token.v + 1)};
  lane_.postings.push_back(posting);
  actions_.push_back({.what = Do::post, .chunk = posting.edge, .micro = posting.micro, .token = posting.token, .unit = posting.unit});
  return posting.token;
}

void LaneBuilder::wait(Token token) {
  Posting const& first = postings_of(lane_, token).front();
  actions_.push_back({.what = Do::wait, .chunk = first.edge, .micro = first.micro, .token = token, .unit = first.unit});
}

Schedule lower(Schedule const& bucketed, std::vector<BlockShape> const& blocks, Axes axes, Overlap overlap, Matching matching) {
  expect(bucketed.form == Form::refined, "only a refined schedule can be lowered");
  expect(axes == 0 || bucketed.buckets.size() == bucketed.lanes.size(), "gradients are reduced in buckets: bucket() comes first");
  refuse_shared_units(bucketed, blocks);
  expect(bucketed.sharing == Sharing::replicated || axes != 0, "weights are shared by the ranks that reduce gradients together");
  Schedule lowered = bucketed;
  lowered.form = Form::lowered;
  lowered.reduced_over = axes;
  lowered.matching = matching;
  for (Section section : sections) {
    BoundaryExchange const exchange(bucketed, blocks, section, matching);
    for (int lane = 0; lane < int(lowered.lanes.size()); ++lane) {
      Lane& actions = lowered.lanes[std::size_t(lane)];
      LaneBuilder messages(actions, std::exchange(actions[section], {}));
      exchange_boundaries(messages, exchange, lane);
      LaneBuilder reductions(actions, messages.finish());
      reduce_gradients(reductions, lowered, blocks, lane, overlap);
      LaneBuilder gathers(actions, reductions.finish());
      gather_weights(gathers, lowered, blocks, overlap);
      actions[section] = gathers.finish();
    }
  }
  return lowered;
}

}  // namespace shardmark
