#pragma once
// Replays a schedule with costs: the prediction of makespan, bubble and exposed communication.

#include <functional>
#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace shardmark {

/// Unit: seconds (or any unit of time); bytes for sizes.
struct Costs {
  std::function<double(Action const&, int lane)> action;            // duration of a computing action
  std::function<double(Posting const&, Schedule const&)> transfer;  // duration of a message or collective once started
  bool overlap = true;                                              // transfers run beside computation
};
/// alpha + bytes / beta for messages; c(n) alpha + 2 (n-1)/n bytes / beta for ring all-reduces of n ranks.
struct AlphaBeta {
  double alpha_seconds = 0;
  double bytes_per_second = 0;
};

struct Span {
  int lane = 0;
  Action action;
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<Span> spans;
  double makespan = 0;
  std::vector<double> busy;     // per lane
  double lane_idle = 0;         // max over lanes of (end of last - start of first) - busy
  double barrier_idle = 0;      // max over lanes of makespan - busy
  double exposed_transfer = 0;  // max over lanes of time spent waiting in `wait`
};

/// @throws BadSchedule when it doesn't end.
Timeline simulate(Schedule const& schedule, Costs const& costs, int windows = 1);

/// Text picture, one row a lane; at most `columns` wide. Coarse schedules in unit time as in the papers' figures:
///   stage 0 | F0 F1 F2 F3  .  . B3 B2 B1 B0  R  U
std::string render(Schedule const& schedule, int columns = 100);
/// One line per action, for logs and tests.
std::string to_string(Action const& action);
std::string to_string(Posting const& posting);
std::string to_text(Schedule const& schedule);

}  // namespace shardmark
