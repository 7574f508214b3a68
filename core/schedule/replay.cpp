#include "schedule/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "schedule/text.hpp"

namespace shardmark {
namespace {

constexpr std::size_t message_stream = 0;  // streams 1..7 belong to sets of axes, the rest to named groups
constexpr std::size_t first_named_stream = 8;

std::size_t channel_of(Posting const& posting) { return std::size_t(posting.edge.v) * 2 + (posting.gradient ? 1 : 0); }

bool is_message(Posting const& posting) { return posting.transfer != Transfer::collective; }

}  // namespace

std::string_view name(CommunicationModel model) {
  switch (model) {
    case CommunicationModel::rendezvous:
      return "rendezvous";
    case CommunicationModel::fifo:
      return "fifo";
    case CommunicationModel::launch_order:
      return "launch order";
  }
  return "?";
}

Replay::Replay(Unrolled const& unrolled, CommunicationModel model, Costs const* costs)
    : unrolled_(unrolled), model_(model), costs_(costs), lanes_(std::size_t(unrolled.lanes())), queued_(lanes_.size(), false) {
  std::size_t const channels = std::size_t(unrolled.chunks()) * 2;
  std::size_t const cells = channels * std::size_t(unrolled.micros());
  for (Lane const& lane : unrolled.schedule().lanes) {
    std::set<std::string> groups;
    for (Posting const& posting : lane.postings) {
      if (!posting.group.empty()) groups.insert(posting.group);
    }
    for (std::string const& group : groups) {
      ++members_[group];
      named_streams_.emplace(group, first_named_stream + named_streams_.size());
    }
  }
  if (unrolled.schedule().form == Form::lowered) {
    messages_.resize(cells);
    sent_.resize(channels);
    received_.resize(channels);
    channel_free_.resize(channels);
  } else {
    for (auto& made : made_) made.assign(cells / 2, never);
  }
  for (int lane = 0; lane < unrolled.lanes(); ++lane) {
    LaneState& state = lanes_[std::size_t(lane)];
    state.groups_of_token.resize(std::size_t(unrolled.tokens(lane)));
    state.streams.resize(first_named_stream + named_streams_.size());
    state.heads.resize(state.streams.size());
    state.free.resize(state.streams.size());
  }
}

Timeline Replay::run() {
  for (int lane = 0; lane < unrolled_.lanes(); ++lane) wake(lane);
  while (!runnable_.empty()) {
    int const lane = runnable_.back();
    runnable_.pop_back();
    queued_[std::size_t(lane)] = false;
    advance(lane);
  }
  for (int lane = 0; lane < unrolled_.lanes(); ++lane) {
    if (lanes_[std::size_t(lane)].at < unrolled_.lane(lane).size()) report_stuck(lane);
  }
  return timeline();
}

void Replay::wake(int lane) {
  if (queued_[std::size_t(lane)]) return;
  queued_[std::size_t(lane)] = true;
  runnable_.push_back(lane);
}

void Replay::advance(int lane) {
  std::vector<Step> const& steps = unrolled_.lane(lane);
  std::size_t& at = lanes_[std::size_t(lane)].at;
  while (at < steps.size() && step(lane, steps[at])) ++at;
}

/// False: the lane is blocked.
bool Replay::step(int lane, Step const& step) {
  switch (step.action.what) {
    case Do::post:
      post(lane, step);
      return true;
    case Do::wait:
      return wait(lane, step);
    default:
      return compute(lane, step);
  }
}

bool Replay::compute(int lane, Step const& step) {
  LaneState& state = lanes_[std::size_t(lane)];
  bool const decides = step.action.what == Do::decide || step.action.what == Do::update;
  double const ready = decides ? decision_ready(lane, step.action) : data_ready(step.action);
  if (ready == never) return false;
  double const begin = std::max(state.clock, ready);
  double const duration = costs_ == nullptr ? 0 : costs_->action(step.action, lane);
  if (state.first == never) state.first = begin;
  state.clock = begin + duration;
  state.busy += duration;
  if (costs_ != nullptr) spans_.push_back({lane, step.action, begin, state.clock});
  if (step.action.what == Do::reduce && unrolled_.schedule().defers()) arrive(lane, Version{++state.given});
  publish(step.action, state.clock);
  return true;
}

/// When what another chunk makes is there; never: not yet. With messages the waits before it have seen to that.
double Replay::data_ready(Action const& action) const {
  if (unrolled_.schedule().form == Form::lowered) return 0;
  auto const made = [&](int direction, int chunk) {
    return made_[direction][std::size_t(chunk) * std::size_t(unrolled_.micros()) + std::size_t(action.micro.v)];
  };
  switch (action.what) {
    case Do::forward:
      return action.chunk.v == 0 ? 0 : made(0, action.chunk.v - 1);
    case Do::backward:
    case Do::backward_input:
      return action.chunk.v + 1 == unrolled_.chunks() ? 0 : made(1, action.chunk.v + 1);
    default:
      return 0;
  }
}

/// Without messages: what `action` made is everywhere at once.
void Replay::publish(Action const& action, double end) {
  if (unrolled_.schedule().form == Form::lowered) return;
  bool const forward = action.what == Do::forward;
  if (!forward && action.what != Do::backward && action.what != Do::backward_input) return;
  made_[forward ? 0 : 1][std::size_t(action.chunk.v) * std::size_t(unrolled_.micros()) + std::size_t(action.micro.v)] = end;
  int const next = action.chunk.v + (forward ? 1 : -1);
  if (next >= 0 && next < unrolled_.chunks()) wake(unrolled_.lane_of(next));
}

/// When a decision can be taken, or an update that has none of its own in a coarse schedule. Without messages the parts of deferred ones
/// are everywhere once all lanes' gradients are complete; with messages the wait before it has seen to that.
double Replay::decision_ready(int lane, Action const& action) {
  Schedule const& schedule = unrolled_.schedule();
  bool const first = action.what == (schedule.form == Form::coarse ? Do::update : Do::decide);
  if (!first || unrolled_.lanes() == 1) return 0;
  if (schedule.synchronous()) return schedule.form == Form::coarse ? 0 : pass_barrier(lane, action);
  if (!schedule.defers() || schedule.form == Form::lowered) return 0;
  Barrier const& barrier = barriers_[action.version];
  return barrier.arrived < unrolled_.lanes() ? never : barrier.release;
}

/// All lanes of a synchronous schedule decide together.
double Replay::pass_barrier(int lane, Action const& action) {
  LaneState& state = lanes_[std::size_t(lane)];
  if (!state.arrived) {
    state.arrived = true;
    arrive(lane, action.version);
  }
  Barrier const& barrier = barriers_[action.version];
  if (barrier.arrived < unrolled_.lanes()) return never;
  state.arrived = false;
  return barrier.release;
}

void Replay::arrive(int lane, Version decision) {
  Barrier& barrier = barriers_[decision];
  barrier.release = std::max(barrier.release, lanes_[std::size_t(lane)].clock);
  if (++barrier.arrived < unrolled_.lanes()) return;
  for (int other = 0; other < unrolled_.lanes(); ++other) wake(other);
}

bool Replay::wait(int lane, Step const& step) {
  LaneState& state = lanes_[std::size_t(lane)];
  std::deque<int>& open = state.groups_of_token[std::size_t(step.action.token.v)];
  if (open.empty()) reject(lane, step, "this token is not outstanding");
  Group const& group = groups_[std::size_t(open.front())];
  if (group.left > 0) return false;
  double const begin = state.clock;
  state.clock = std::max(begin, group.done) + group.held;
  state.exposed += state.clock - begin;
  if (costs_ != nullptr) spans_.push_back({lane, step.action, begin, state.clock});
  open.pop_front();
  return true;
}

void Replay::post(int lane, Step const& step) {
  LaneState& state = lanes_[std::size_t(lane)];
  auto const postings = unrolled_.postings(lane, step.action.token);
  int const id = int(groups_.size());
  groups_.push_back({lane, &step, stream_of(postings.front()), postings.size(), state.clock, state.clock, 0});
  state.groups_of_token[std::size_t(step.action.token.v)].push_back(id);
  if (occupies(groups_.back())) {
    std::size_t const stream = groups_.back().stream;
    state.streams[stream].push_back(id);
    bool const first = state.heads[stream] + 1 == state.streams[stream].size();
    if (first) offers_.push_back({id, std::max(state.clock, state.free[stream])});
  } else {
    offers_.push_back({id, state.clock});
  }
  while (!offers_.empty()) {
    Offer const next = offers_.back();
    offers_.pop_back();
    offer(next);
  }
}

std::size_t Replay::stream_of(Posting const& posting) const {
  if (is_message(posting)) return message_stream;
  return posting.group.empty() ? posting.axes : named_streams_.at(posting.group);
}

/// Collectives of a communicator always run in order; groups of messages do under NCCL.
bool Replay::occupies(Group const& group) const { return group.stream != message_stream || model_ == CommunicationModel::launch_order; }

void Replay::offer(Offer offer) {
  Group const& group = groups_[std::size_t(offer.group)];
  for (Posting const& posting : unrolled_.postings(group.lane, group.step->action.token)) {
    if (is_message(posting)) {
      offer_message(offer, posting);
    } else if (posting.group.empty()) {
      complete(offer.group, offer.ready, seconds(posting));  // all replicas of this lane are in the same state
    } else {
      offer_meeting(offer, posting);
    }
  }
}

void Replay::offer_message(Offer offer, Posting const& posting) {
  Group const& group = groups_[std::size_t(offer.group)];
  bool const sends = posting.transfer == Transfer::send;
  std::size_t const channel = channel_of(posting);
  MicroId const micro = unrolled_.micro_of(posting, *group.step);
  int const position = (sends ? sent_ : received_)[channel]++;
  int const cell = model_ == CommunicationModel::fifo ? position : micro.v;
  Message& message = messages_[channel * std::size_t(unrolled_.micros()) + std::size_t(cell)];
  (sends ? message.send_group : message.receive_group) = offer.group;
  if (message.send_group < 0 || message.receive_group < 0) {
    message.ready = offer.ready;
    message.micro = micro;
    return;
  }
  if (message.micro != micro) {
    reject(group.lane, *group.step,
           fmt::format("message {} of this channel is micro-batch {} here but {} on lane {}", position, micro.v, message.micro.v,
                       posting.peer));
  }
  double const start = std::max({message.ready, offer.ready, channel_free_[channel]});
  double const duration = seconds(posting);
  channel_free_[channel] = start + advancing(duration);
  complete(message.send_group, start, duration);
  complete(message.receive_group, start, duration);
}

void Replay::offer_meeting(Offer offer, Posting const& posting) {
  Group const& group = groups_[std::size_t(offer.group)];
  Meeting& meeting = meetings_[{posting.group, met_[{posting.group, group.lane}]++}];
  meeting.groups.push_back(offer.group);
  meeting.ready = std::max(meeting.ready, offer.ready);
  if (meeting.groups.size() < members_.at(posting.group)) return;
  for (int member : meeting.groups) complete(member, meeting.ready, seconds(posting));
}

double Replay::seconds(Posting const& posting) const { return costs_ == nullptr ? 0 : costs_->transfer(posting, unrolled_.schedule()); }

/// The part of a transfer that runs by itself; without overlap its wait does the work.
double Replay::advancing(double duration) const { return costs_ != nullptr && costs_->overlap == Overlap::off ? 0 : duration; }

/// One message of `id` runs from `start` on.
void Replay::complete(int id, double start, double duration) {
  Group& group = groups_[std::size_t(id)];
  group.done = std::max(group.done, start + advancing(duration));
  group.held = std::max(group.held, duration - advancing(duration));
  if (--group.left > 0) return;
  LaneState& state = lanes_[std::size_t(group.lane)];
  if (occupies(group)) {
    auto const& queue = state.streams[group.stream];
    std::size_t const next = ++state.heads[group.stream];
    state.free[group.stream] = group.done;
    if (next < queue.size()) offers_.push_back({queue[next], std::max(groups_[std::size_t(queue[next])].posted, group.done)});
  }
  wake(group.lane);
}

void Replay::report_stuck(int first) const {
  std::string others;
  for (int lane = first; lane < unrolled_.lanes(); ++lane) {
    if (lanes_[std::size_t(lane)].at == unrolled_.lane(lane).size()) continue;
    others += fmt::format("; lane {} {}", lane, why_stuck(lane));
  }
  reject(first, unrolled_.lane(first)[lanes_[std::size_t(first)].at], fmt::format("stuck for ever under {}{}", name(model_), others));
}

std::string Replay::why_stuck(int lane) const {
  LaneState const& state = lanes_[std::size_t(lane)];
  Step const& step = unrolled_.lane(lane)[state.at];
  if (step.action.what != Do::wait) return fmt::format("needs what another lane never makes: {}", to_string(step.action));
  Group const& group = groups_[std::size_t(state.groups_of_token[std::size_t(step.action.token.v)].front())];
  std::string waits;
  for (Posting const& posting : unrolled_.postings(lane, step.action.token)) {
    Posting shown = posting;
    shown.micro = unrolled_.micro_of(posting, *group.step);
    waits += (waits.empty() ? "waits for: " : " + ") + to_string(shown);
  }
  return waits;
}

Timeline Replay::timeline() const {
  Timeline result;
  result.spans = spans_;
  for (LaneState const& lane : lanes_) result.makespan = std::max(result.makespan, lane.clock);
  for (LaneState const& lane : lanes_) {
    double const span = lane.first == never ? 0 : lane.clock - lane.first;
    result.lanes.push_back({lane.busy, span - lane.busy, result.makespan - lane.busy, lane.exposed});
  }
  return result;
}

}  // namespace shardmark
