#include "schedule/unroll.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/text.hpp"

namespace shardmark {
namespace {

std::vector<Step> unroll(Lane const& lane, Schedule const& schedule, int windows) {
  std::vector<Step> steps;
  steps.reserve(lane.prologue.size() + lane.body.size() * std::size_t(windows) + lane.epilogue.size());
  auto const run = [&](Section section, int repetitions) {
    std::vector<Action> const& actions = lane[section];
    for (int i = 0; i < int(actions.size()); ++i) {
      steps.push_back({shifted(actions[std::size_t(i)], schedule, repetitions), section, i, repetitions});
    }
  };
  run(Section::prologue, 0);
  for (int window = 0; window < windows; ++window) run(Section::body, window);
  run(Section::epilogue, windows);
  return steps;
}

/// Micro-batches that enter outside of the body: the most forwards of one chunk there.
int entering_outside_body(Schedule const& schedule) {
  std::vector<int> forwards(schedule.lane_of_chunk.size());
  for (Lane const& lane : schedule.lanes) {
    for (std::vector<Action> const* section : {&lane.prologue, &lane.epilogue}) {
      for (Action const& action : *section) {
        bool const known = action.chunk.valid() && action.chunk.v < int(forwards.size());
        if (action.what == Do::forward && known) ++forwards[std::size_t(action.chunk.v)];
      }
    }
  }
  return forwards.empty() ? 0 : *std::max_element(forwards.begin(), forwards.end());
}

std::vector<std::span<Posting const>> by_token(int lane, std::vector<Posting> const& postings) {
  std::vector<std::span<Posting const>> found;
  for (std::size_t i = 0; i < postings.size();) {
    Token const token = postings[i].token;
    if (token.v < int(found.size())) throw BadSchedule(fmt::format("lane {}: postings must have ascending tokens from 0 on", lane));
    std::size_t end = i;
    while (end < postings.size() && postings[end].token == token) ++end;
    found.resize(std::size_t(token.v) + 1);
    found.back() = {postings.data() + i, end - i};
    i = end;
  }
  return found;
}

}  // namespace

Unrolled::Unrolled(Schedule const& schedule, int windows) : schedule_(&schedule) {
  for (Lane const& lane : schedule.lanes) {
    postings_.push_back(by_token(int(lanes_.size()), lane.postings));
    lanes_.push_back(unroll(lane, schedule, windows));
  }
  micros_ = windows * schedule.micros_per_window + entering_outside_body(schedule);
}

std::span<Posting const> Unrolled::postings(int lane, Token token) const {
  auto const& all = postings_[std::size_t(lane)];
  return token.valid() && token.v < int(all.size()) ? all[std::size_t(token.v)] : std::span<Posting const>{};
}

MicroId Unrolled::micro_of(Posting const& posting, Step const& step) const {
  return posting.micro.valid() ? MicroId{posting.micro.v + step.windows * schedule_->micros_per_window} : posting.micro;
}

namespace {

bool computes_on_chunk(Do what) {
  switch (what) {
    case Do::forward:
    case Do::backward:
    case Do::backward_input:
    case Do::backward_weight:
    case Do::recompute:
    case Do::fold:
      return true;
    default:
      return false;
  }
}

/// A message crosses the boundary in front of `edge`: one end is on this lane, the other on the peer.
bool connects(Unrolled const& unrolled, int lane, Posting const& posting) {
  if (posting.edge.v < 1 || posting.edge.v >= unrolled.chunks()) return false;
  bool const towards_edge = (posting.transfer == Transfer::send) != posting.gradient;
  int const here = towards_edge ? posting.edge.v - 1 : posting.edge.v;
  int const there = towards_edge ? posting.edge.v : posting.edge.v - 1;
  return posting.peer != lane && unrolled.lane_of(here) == lane && unrolled.lane_of(there) == posting.peer;
}

void require_known_postings(Unrolled const& unrolled, int lane, Step const& step) {
  auto const postings = unrolled.postings(lane, step.action.token);
  if (postings.empty()) reject(lane, step, "no posting has this token");
  for (Posting const& posting : postings) {
    if (posting.transfer == Transfer::collective) continue;
    MicroId const micro = unrolled.micro_of(posting, step);
    if (!micro.valid() || micro.v >= unrolled.micros()) reject(lane, step, "a message of a micro-batch that never enters");
    if (!connects(unrolled, lane, posting)) reject(lane, step, to_string(posting) + " doesn't connect this lane with that one");
  }
}

}  // namespace

void require_known_ids(Unrolled const& unrolled) {
  for (int lane = 0; lane < unrolled.lanes(); ++lane) {
    for (Step const& step : unrolled.lane(lane)) {
      Action const& action = step.action;
      if (action.what == Do::post || action.what == Do::wait) require_known_postings(unrolled, lane, step);
      if (!computes_on_chunk(action.what)) continue;
      if (!action.chunk.valid() || action.chunk.v >= unrolled.chunks()) reject(lane, step, "there is no such chunk");
      if (unrolled.lane_of(action.chunk.v) != lane) {
        reject(lane, step, fmt::format("this chunk belongs to lane {}", unrolled.lane_of(action.chunk.v)));
      }
      if (!action.micro.valid() || action.micro.v >= unrolled.micros()) reject(lane, step, "this micro-batch never enters");
    }
  }
}

std::string describe(int lane, Step const& step) {
  std::string const repetition = step.section == Section::body ? fmt::format(" of repetition {}", step.windows) : "";
  return fmt::format("lane {}, {} action {}{}, {}", lane, name(step.section), step.index, repetition, to_string(step.action));
}

void reject(int lane, Step const& step, std::string const& problem) { throw BadSchedule(describe(lane, step) + ": " + problem); }

}  // namespace shardmark
