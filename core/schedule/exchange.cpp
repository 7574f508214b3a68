#include "schedule/exchange.hpp"

#include <algorithm>

#include "schedule/simulate.hpp"

namespace shardmark {
namespace {

bool takes_gradient(Do what) { return what == Do::backward || what == Do::backward_input; }

/// Whether an action stands in front of all that concerns a message.
bool precedes(Action const& action, MessageName const& message) {
  if (action.what == Do::update || action.what == Do::decide) return true;
  return message.gradient && action.what == Do::forward && action.micro == message.micro && action.chunk.v + 1 == message.edge.v;
}

}  // namespace

BoundaryExchange::BoundaryExchange(Schedule const& refined, std::vector<BlockShape> const& blocks, Section section, Matching matching)
    : schedule_(refined), section_(section), matching_(matching) {
  find_messages();
  walk(blocks);
  find_free_channels();
}

void BoundaryExchange::find_messages() {
  int const lanes = int(schedule_.lanes.size());
  for (int lane = 0; lane < lanes; ++lane) {
    needed_.emplace_back(actions(lane).size(), -1);
    made_.emplace_back(actions(lane).size(), -1);
    steps_.emplace_back(actions(lane).size());
  }
  for (int lane = 0; lane < lanes; ++lane) {
    for (std::size_t i = 0; i < actions(lane).size(); ++i) add_end({lane, i}, actions(lane)[i]);
  }
}

/// The messages that an action of a lane needs and makes.
void BoundaryExchange::add_end(ActionPlace place, Action const& action) {
  bool const forward = action.what == Do::forward;
  if (!forward && !takes_gradient(action.what)) return;
  auto const lane_of = [&](int block) { return schedule_.lane_of_chunk[std::size_t(block)]; };
  auto const elsewhere = [&](int block) {
    return block >= 0 && block < int(schedule_.lane_of_chunk.size()) && lane_of(block) != place.lane;
  };
  int const here = action.chunk.v;
  int const source = forward ? here - 1 : here + 1, target = forward ? here + 1 : here - 1;
  if (elsewhere(source)) {
    MessageName const what{{forward ? here : here + 1}, !forward, action.micro};
    int const id = message(what, lane_of(source), place.lane);
    messages_[std::size_t(id)].needed = place;
    needed_[std::size_t(place.lane)][place.action] = id;
  }
  if (elsewhere(target)) {
    MessageName const what{{forward ? here + 1 : here}, !forward, action.micro};
    int const id = message(what, place.lane, lane_of(target));
    messages_[std::size_t(id)].made = place;
    made_[std::size_t(place.lane)][place.action] = id;
  }
}

int BoundaryExchange::message(MessageName what, int from, int to) {
  auto const [found, fresh] = index_.try_emplace(what, int(messages_.size()));
  if (fresh) messages_.push_back({.what = what, .from = from, .to = to, .made = {}, .needed = {}});
  return found->second;
}

/// Gives every action a position: the next one is that which could start first.
void BoundaryExchange::walk(std::vector<BlockShape> const& blocks) {
  std::size_t const lanes = schedule_.lanes.size();
  std::vector<std::size_t> at(lanes);
  std::vector<double> clock(lanes);
  std::vector<double> made_at(messages_.size(), -1);
  auto const start = [&](std::size_t lane) -> std::optional<double> {
    if (at[lane] == needed_[lane].size()) return {};
    int const input = needed_[lane][at[lane]];
    if (input < 0 || !messages_[std::size_t(input)].made) return clock[lane];
    double const made = made_at[std::size_t(input)];
    return made < 0 ? std::optional<double>() : std::max(clock[lane], made);
  };
  for (std::size_t position = 0;; ++position) {
    std::optional<double> first;
    std::size_t lane = 0;
    for (std::size_t l = 0; l < lanes; ++l) {
      auto const candidate = start(l);
      if (candidate && (!first || *candidate < *first)) first = candidate, lane = l;
    }
    if (!first) return;  // the end, or an order of actions that check() will refuse
    ActionPlace const place{int(lane), at[lane]++};
    Action const& action = actions(place.lane)[place.action];
    clock[lane] = *first + (action.chunk.valid() ? seconds_of(blocks[std::size_t(action.chunk.v)]).of(action) : 0);
    steps_[lane][place.action] = {position, *first, clock[lane]};
    if (int const output = made_[lane][place.action]; output >= 0) made_at[std::size_t(output)] = clock[lane];
  }
}

/// The first action of `lane` that stands behind `position`.
std::size_t BoundaryExchange::first_behind(int lane, std::size_t position) const {
  auto const& steps = steps_[std::size_t(lane)];
  return std::size_t(std::ranges::upper_bound(steps, position, {}, &Step::position) - steps.begin());
}

/// The action before which a message is received.
std::size_t BoundaryExchange::receive_place(LaneMessage const& message) const {
  if (matching_ == Matching::by_launch_order) {
    if (!message.made) return 0;
    std::size_t const made = position(*message.made);
    if (made != unreached) return first_behind(message.to, made);
  }
  // One ahead on its channel; but an update is over before the next micro-batch is met, and a forward before its gradient is expected.
  std::size_t place = last_place(message);
  while (place > message.channel_free && !precedes(actions(message.to)[place - 1], message.what)) --place;
  return place;
}

/// Right before the action that needs it, or before the recomputations in front of that: the gradient travels while activations are made
/// again.
std::size_t BoundaryExchange::last_place(LaneMessage const& message) const {
  std::size_t place = message.needed->action;
  if (!message.what.gradient) return place;
  while (place > 0 && actions(message.to)[place - 1].what == Do::recompute) --place;
  return place;
}

/// A channel's next message is received when the one before it is used: at most two wait at a time.
void BoundaryExchange::find_free_channels() {
  std::map<std::pair<int, bool>, std::vector<LaneMessage*>> channels;  // (edge, gradient)
  for (LaneMessage& message : messages_) {
    if (message.needed) channels[{message.what.edge.v, message.what.gradient}].push_back(&message);
  }
  for (auto& [channel, list] : channels) {
    std::ranges::sort(list, {}, [](LaneMessage const* message) { return message->needed->action; });
    for (std::size_t i = 1; i < list.size(); ++i) list[i]->channel_free = list[i - 1]->needed->action;
  }
}

bool BoundaryExchange::is_over(LaneMessage const& message, ActionPlace place) const {
  if (!message.needed) return false;
  Step const& used = step(last_user(*message.needed));
  return used.position < position(place) && used.end <= step(place).start;
}

/// The last block of the chunk that begins with this one.
ActionPlace BoundaryExchange::last_user(ActionPlace place) const {
  auto const& list = actions(place.lane);
  Action const& first = list[place.action];
  ActionPlace last = place;
  for (std::size_t i = place.action + 1; i < list.size() && list[i].micro == first.micro; ++i) {
    if (list[i].what == first.what) last.action = i;
    if (list[i].what != first.what && list[i].what != Do::fold) break;
  }
  return last;
}

BoundaryExchange::Posts BoundaryExchange::posts(int lane) const {
  std::size_t const places = actions(lane).size() + 1;
  Posts posts{std::vector<std::vector<int>>(places), std::vector<std::vector<int>>(places)};
  bool const ordered = matching_ == Matching::by_launch_order;
  for (int id = 0; id < int(messages_.size()); ++id) {
    LaneMessage const& message = messages_[std::size_t(id)];
    if (message.to == lane && message.needed) posts.receives_before[receive_place(message)].push_back(id);
    if (message.from == lane && message.made) {
      // In one order, what another section receives comes last.
      bool const last = ordered && !message.needed;
      posts.sends_behind[last ? places - 1 : message.made->action].push_back(id);
    }
  }
  auto const key = [&](int id) {
    LaneMessage const& message = messages_[std::size_t(id)];
    bool const placed = message.made && message.needed;
    std::size_t const made = placed ? position(*message.made) + 1 : 0;
    return std::pair(made, message.what);
  };
  for (auto* list : {&posts.receives_before, &posts.sends_behind}) {
    for (auto& ids : *list) std::ranges::sort(ids, {}, key);
  }
  return posts;
}

}  // namespace shardmark
