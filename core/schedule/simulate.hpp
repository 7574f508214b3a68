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
  /// Of an array of `bytes` that is summed, gathered or handed out: what passes the busiest rank's link.
  double collective_seconds(Collective what, double bytes, int ranks) const;
};

/// Durations of one chunk's actions (refined and lowered: one block's).
struct ChunkSeconds {
  double forward = 1, input = 1, weight = 1;
  double recompute = 0;
  double selective = 0;  // recomputation of what a selective stash leaves out
  /// 0 for what doesn't compute on a chunk.
  double of(Action const& action) const;
};
/// From the block's relative costs; a recomputation takes as long as the forward.
ChunkSeconds seconds_of(BlockShape const& block);

/// What crosses the network. All links are alike.
struct LinkCosts {
  AlphaBeta link = {};
  std::vector<double> edge_bytes = {};  // of one micro-batch's activation in front of each chunk; its gradient is as large
  double element_bytes = 4;             // of reduced gradients
  int replicas = 1;                     // that share a reduction, in a ring
};

/// Each action takes what its chunk's entry says, each message and reduction what the link says; exchanges of tied slots are free.
Costs costs_of(std::vector<ChunkSeconds> chunks, LinkCosts traffic = {.link = {.alpha_seconds = 0, .bytes_per_second = 1}});

struct Span {
  int lane = 0;
  Action action;
  double begin = 0, end = 0;
};

/// Where a lane's time goes.
struct LaneSeconds {
  double busy = 0;          // computing
  double lane_idle = 0;     // between the start of its first action and the end of its last one, not computing
  double barrier_idle = 0;  // of the makespan, not computing
  double exposed = 0;       // in `wait`
};

struct Timeline {
  std::vector<Span> spans;  // computing actions and waits, in order on each lane; a wait lasts as long as it blocks
  double makespan = 0;
  std::vector<LaneSeconds> lanes;
  /// Largest over the lanes.
  double lane_idle() const;
  double barrier_idle() const;
  double exposed() const;
};

/// Messages and collectives start when all their ends are posted, without buffering; those of one channel, and collectives of one
/// communicator, run one after another; `decide` is a barrier over synchronous lanes, and a deferred one comes behind all lanes' gradients.
/// A schedule that isn't lowered moves its data
/// at once and for free.
/// @throws BadSchedule when it doesn't end.
Timeline simulate(Schedule const& schedule, Costs const& costs, int windows = 1);

/// How long one more repetition of the body takes once the pipeline is full; of a synchronous schedule its makespan.
double window_seconds(Schedule const& schedule, Costs const& costs);

}  // namespace shardmark
