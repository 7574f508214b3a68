#include "schedule/lower.hpp"

#include <utility>

#include "base/error.hpp"

namespace shardmark {

Token LaneBuilder::post(Posting posting) {
  posting.token = {int(lane_.postings.size() == 0 ? 0 : lane_.postings.back().token.v + 1)};
  lane_.postings.push_back(posting);
  actions_.push_back({.what = Do::post, .chunk = posting.edge, .micro = posting.micro, .token = posting.token, .unit = posting.unit});
  return posting.token;
}

void LaneBuilder::join(Posting posting) {
  posting.token = lane_.postings.back().token;
  lane_.postings.push_back(posting);
}

void LaneBuilder::wait(Token token) {
  Posting const& first = postings_of(lane_, token).front();
  actions_.push_back({.what = Do::wait, .chunk = first.edge, .micro = first.micro, .token = token, .unit = first.unit});
}

Schedule lower(Schedule bucketed, std::vector<BlockShape> const& blocks, Axes axes, Overlap overlap) {
  expect(bucketed.form == Form::refined, "only a refined schedule can be lowered");
  expect(axes == 0 || bucketed.buckets.size() == bucketed.lanes.size(), "gradients are reduced in buckets: bucket() comes first");
  bucketed.form = Form::lowered;
  bucketed.reduced_over = axes;
  for (int lane = 0; lane < int(bucketed.lanes.size()); ++lane) {
    Lane& actions = bucketed.lanes[std::size_t(lane)];
    for (Section section : sections) {
      LaneBuilder messages(actions, std::exchange(actions[section], {}));
      exchange_boundaries(messages, bucketed.lane_of_chunk, lane);
      LaneBuilder reductions(actions, messages.finish());
      reduce_gradients(reductions, bucketed, blocks, lane, overlap);
      actions[section] = reductions.finish();
    }
  }
  return bucketed;
}

}  // namespace shardmark
