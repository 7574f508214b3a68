// Buckets of consecutive segments in backward order (Li et al., "PyTorch Distributed", VLDB 2020).

#include <algorithm>

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {
namespace {

struct SizedSegment {
  Segment segment;
  std::int64_t elements = 0;
};

/// The body, rotated so that it ends with its last reduce mark: the folds in front of it are those of one update.
std::vector<Action> up_to_reduce(std::vector<Action> body) {
  auto const is_mark = [](Action const& action) { return action.what == Do::reduce; };
  auto const mark = std::find_if(body.rbegin(), body.rend(), is_mark).base();
  if (mark != body.begin()) std::rotate(body.begin(), mark, body.end());
  return body;
}

/// A lane's segments, ordered by their last fold.
std::vector<SizedSegment> completion_order(std::vector<Action> const& body, std::vector<BlockShape> const& blocks) {
  std::vector<SizedSegment> order;
  std::vector<bool> seen(blocks.size());
  std::vector<Action> const actions = up_to_reduce(body);
  for (auto action = actions.rbegin(); action != actions.rend(); ++action) {
    if (action->what != Do::fold || seen[std::size_t(action->chunk.v)]) continue;
    seen[std::size_t(action->chunk.v)] = true;
    BlockShape const& block = blocks[std::size_t(action->chunk.v)];
    for (std::size_t i = block.produces.size(); i-- > 0;) order.push_back({block.produces[i], block.elements[i]});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<Bucket> fill(std::vector<SizedSegment> const& order, BucketRule const& rule) {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t const cap = buckets.size() <= 1 ? rule.first_cap_bytes : rule.cap_bytes;
    auto const fits = [&](Bucket const& open) { return (open.elements + order[i].elements) * std::int64_t(rule.element_bytes) <= cap; };
    bool const alone = rule.last_alone && i + 1 == order.size();
    if (buckets.empty() || alone || !fits(buckets.back())) buckets.push_back({.id = {int(buckets.size())}});
    buckets.back().segments.push_back(order[i].segment);
    buckets.back().elements += order[i].elements;
    buckets.back().elements_of_segment.push_back(order[i].elements);
  }
  return buckets;
}

}  // namespace

Schedule bucket(Schedule refined, std::vector<BlockShape> const& blocks, BucketRule const& rule) {
  expect(refined.form == Form::refined, "only a refined schedule has segments to group");
  expect(rule.cap_bytes > 0 && rule.first_cap_bytes > 0, "a bucket holds at least a byte");
  for (BlockShape const& block : blocks) {
    expect(block.produces.size() == block.elements.size(), "each gradient segment of a block has a size");
  }
  refined.buckets.clear();
  for (Lane const& lane : refined.lanes) refined.buckets.push_back(fill(completion_order(lane.body, blocks), rule));
  return refined;
}

}  // namespace shardmark
