#include "schedule/lower.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace shardmark {
namespace {

/// Holders meet at every update. In a pipeline whose stages decide by themselves the last one makes update u before the first one has the
/// gradients for it, and would wait for what depends on its own next micro-batch: a deadlock.
/// A deferred decision waits for the first lane, whose gradients are complete last; so it's the one that counts a tied unit in the norm.
void refuse_shared_units(Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  auto const tied = tied_units(blocks, schedule.lane_of_chunk);
  bool const begin_later = std::any_of(tied.begin(), tied.end(), [](TiedUnit const& unit) { return unit.lane_of_slot.front() > 0; });
  require_input(!begin_later || !schedule.defers(),
                {"a tied weight whose first use is behind the first stage, in a pipeline without a flush",
                 "the first stage would wait at each update for a later one to add its gradients",
                 "untie it, use it first on the first stage, or flush the pipeline"});
  bool const shares = std::any_of(tied.begin(), tied.end(), [](TiedUnit const& unit) { return unit.shared(); });
  require_input(!shares || schedule.decisions == Decisions::joint,
                {"weights that are tied over stages don't work in a pipeline whose stages decide by themselves",
                 "at each update a stage would wait for gradients of a later moment",
                 "untie them, keep both uses on one stage, let all stages decide together, or flush the pipeline"});
}

}  // namespace

Token LaneBuilder::post(Posting posting) {
  posting.token = {int(lane_.postings.size() == 0 ? 0 : lane_.postings.back().token.v + 1)};
  lane_.postings.push_back(posting);
  actions_.push_back({.what = Do::post, .chunk = posting.edge, .micro = posting.micro, .token = posting.token, .unit = posting.unit});
  return posting.token;
}

/// Of the posting of the same group, in whichever section it first stood; invalid: none.
Token LaneBuilder::token_of(Posting posting) {
  auto const same = [&](Posting const& other) { return other.group == posting.group; };
  auto const found = std::ranges::find_if(lane_.postings, same);
  return found == lane_.postings.end() ? Token{} : found->token;
}

void LaneBuilder::post_deferred(Posting posting) {
  Token const token = token_of(posting);
  if (!token.valid()) {
    post(std::move(posting));
    return;
  }
  actions_.push_back({.what = Do::post, .token = token, .unit = posting.unit});
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
