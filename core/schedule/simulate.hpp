#pragma once
// Replays a schedule with costs: the prediction of makespan, bubble and exposed communication.

#include <functional>
#include <vector>

#include "schedule/schedule.hpp"

namespace shardmark {

/// Unit: seconds (or any unit of time); bytes for sizes.
struct Costs {
  std::function<double(Action const&, int lane)> action;            // duration of a computing action
  std::function<double(Posting const&, Schedule const&)> transfer;  // duration of a message or collective once started
  Overlap overlap = Overlap::on;                                    // off: transfers advance only inside waits
};

/// The linear model of a network: a message of n bytes takes alpha + n / beta.
struct AlphaBeta {
  double alpha_seconds = 0;
  double bytes_per_second = 0;
  double message_seconds(double bytes) const { return alpha_seconds + bytes / bytes_per_second; }
  /// Ring all-reduce over n ranks: 2 (n-1) messages of 1/n of the bytes.
  double all_reduce_seconds(double bytes, int ranks) const { return 2 * (ranks - 1) * message_seconds(bytes / ranks); }
};

struct Span {
  int lane = 0;
  Action action;
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<Span> spans;  // computing actions and waits, in order on each lane; a wait lasts as long as it blocks
  double makespan = 0;
  std::vector<double> busy;     // per lane
  double lane_idle = 0;         // max over lanes of (end of last - start of first) - busy
  double barrier_idle = 0;      // max over lanes of makespan - busy
  double exposed_transfer = 0;  // max over lanes of time spent in `wait`
};

/// Messages and collectives start when all their ends are posted, without buffering; those of one channel, and collectives of one
/// communicator, run one after another; `decide` is a barrier over synchronous lanes. A schedule that isn't lowered moves its data
/// at once and for free.
/// @throws BadSchedule when it doesn't end.
Timeline simulate(Schedule const& schedule, Costs const& costs, int windows = 1);

}  // namespace shardmark
