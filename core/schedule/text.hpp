#pragma once
// Schedules as text. The coarse form can be written by hand and read back:
//
//   schedule my-1f1b                one word
//   chunks 0 1                      the lane of each chunk
//   micros 2                        micro-batches that a window forwards
//   updates 1                       of the weights in a window; optional, default 1
//   leaves 1 2                      of each sum: groups, micro-batches in each; optional, default 1 and micros / updates
//   sum tree tree micros            over micro-batches and over replicas: tree or loop; which is inside: micros or replicas; optional
//   weights latest                  or delayed: a forward may read older weights on purpose; optional
//   decisions joint                 of all lanes on each update, or per-lane; optional
//   lane 0                          lanes in order from 0
//   prologue                        sections may be left out; so may body's heading
//   body
//     forward chunk 0 micro 0 version 0
//     backward chunk 0 micro 0 version 0
//     reduce
//     update version 1
//   epilogue
//
// # begins a comment; spaces don't matter. What ids mean in each section: schedule.hpp.

#include <string>
#include <string_view>

#include "schedule/schedule.hpp"

namespace shardmark {

/// One line per action. Coarse schedules come back from parse_schedule(); refined and lowered ones are for logs and tests.
std::string to_text(Schedule const& schedule);
std::string_view name(Fold fold);
std::string_view name(Inside inside);
std::string to_string(Action const& action);
std::string to_string(Posting const& posting);

/// Reads the coarse form. Says nothing about whether the schedule is right: check() does.
/// @param shown the name of the text in messages, such as its file's
/// @throws BadRequest with line and column, also for text whose schedule would be absurdly large
Schedule parse_schedule(std::string_view text, std::string_view shown = "schedule");

}  // namespace shardmark
