#include "schedule/text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace shardmark {

std::string_view name(Do what) {
  switch (what) {
    case Do::forward:
      return "forward";
    case Do::backward:
      return "backward";
    case Do::backward_input:
      return "backward_input";
    case Do::backward_weight:
      return "backward_weight";
    case Do::recompute:
      return "recompute";
    case Do::reduce:
      return "reduce";
    case Do::fold:
      return "fold";
    case Do::post:
      return "post";
    case Do::wait:
      return "wait";
    case Do::tie:
      return "tie";
    case Do::decide:
      return "decide";
    case Do::update:
      return "update";
    case Do::release:
      return "release";
  }
  return "?";
}

std::string_view name(Section section) {
  switch (section) {
    case Section::prologue:
      return "prologue";
    case Section::body:
      return "body";
    case Section::epilogue:
      return "epilogue";
  }
  return "?";
}

std::string_view name(Fold fold) { return fold == Fold::loop ? "loop" : "tree"; }
std::string_view name(Inside inside) { return inside == Inside::micros ? "micros" : "replicas"; }
std::string_view name(Kept kept) {
  switch (kept) {
    case Kept::stash:
      return "stash";
    case Kept::selective:
      return "selective";
    case Kept::input:
      return "input";
    case Kept::nothing:
      return "nothing";
  }
  return "?";
}
std::string_view name(Decisions decisions) { return decisions == Decisions::joint ? "joint" : "per-lane"; }
std::string_view name(Weights weights) { return weights == Weights::latest ? "latest" : "delayed"; }

std::string to_string(Action const& action) {
  std::string text(name(action.what));
  auto const add = [&](char const* word, int value) { fmt::format_to(std::back_inserter(text), " {} {}", word, value); };
  bool const versioned = action.what != Do::post && action.what != Do::wait && action.what != Do::fold && action.what != Do::reduce &&
                         action.what != Do::release;
  if (action.unit.valid()) add("unit", action.unit.v);
  if (action.chunk.valid()) add("chunk", action.chunk.v);
  if (action.micro.valid()) add("micro", action.micro.v);
  if (versioned) add("version", action.version.v);
  if (action.token.valid()) add("token", action.token.v);
  if (action.keeps != Kept::stash) fmt::format_to(std::back_inserter(text), " keeps {}", name(action.keeps));
  return text;
}

std::string to_string(Posting const& posting) {
  if (posting.transfer == Transfer::collective) {
    std::string text(name(posting.what));
    if (posting.bucket.valid()) fmt::format_to(std::back_inserter(text), " bucket {}", posting.bucket.v);
    if (!posting.group.empty()) fmt::format_to(std::back_inserter(text), " group {}", posting.group);
    if (posting.group.empty() && posting.unit.valid()) fmt::format_to(std::back_inserter(text), " unit {}", posting.unit.v);
    if (posting.axes != 0) fmt::format_to(std::back_inserter(text), " axes {}", int(posting.axes));
    if (posting.micro.valid()) fmt::format_to(std::back_inserter(text), " micro {}", posting.micro.v);
    return text;
  }
  bool const send = posting.transfer == Transfer::send;
  return fmt::format("{} {} edge {} micro {} {} lane {}", send ? "send" : "receive", posting.gradient ? "gradient" : "activation",
                     posting.edge.v, posting.micro.v, send ? "to" : "from", posting.peer);
}

std::string to_text(Schedule const& schedule) {
  std::string text;
  auto const out = std::back_inserter(text);
  fmt::format_to(out, "schedule {}\nchunks {}\nmicros {}\nupdates {}\nleaves {} {}\n", schedule.name,
                 fmt::join(schedule.lane_of_chunk, " "), schedule.micros_per_window, schedule.versions_per_window, schedule.leaves.outer,
                 schedule.leaves.inner);
  fmt::format_to(out, "sum {} {} {}\n", name(schedule.sum.micros), name(schedule.sum.replicas), name(schedule.sum.inside));
  fmt::format_to(out, "weights {}\ndecisions {}\n", name(schedule.weights), name(schedule.decisions));
  for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    fmt::format_to(out, "lane {}\n", lane);
    for (Section section : sections) {
      std::vector<Action> const& actions = schedule.lanes[lane][section];
      if (!actions.empty()) fmt::format_to(out, "{}\n", name(section));
      for (Action const& action : actions) {
        fmt::format_to(out, "  {}", to_string(action));
        if (action.what == Do::post) {
          char const* separator = ": ";
          for (Posting const& posting : postings_of(schedule.lanes[lane], action.token)) {
            text += std::exchange(separator, " + ") + to_string(posting);
          }
        }
        text += '\n';
      }
    }
  }
  return text;
}

}  // namespace shardmark
