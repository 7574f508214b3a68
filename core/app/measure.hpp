#pragma once
// The timed loop: warm-up, one barrier, then updates timed on every rank. Nothing is removed afterwards.

#include <string>
#include <string_view>
#include <vector>

#include "metrics/allocations.hpp"
#include "metrics/memory.hpp"
#include "run/job.hpp"

namespace shardmark {

/// Whether a loop goes on.
enum class Proceed : std::uint8_t { on, no_further };

/// What happens between the updates of a timed loop.
class BetweenUpdates {
 public:
  virtual ~BetweenUpdates() = default;
  /// After every update, with its 1-based number in this launch: progress and heartbeat. Part of the loop's time.
  virtual void beat(std::int64_t done) = 0;
  /// Whether something else is to be done now, which pause() does. The same on every rank.
  virtual bool wants_pause(std::int64_t done) = 0;
  /// Collective. Its time and allocations aren't the loop's.
  virtual Proceed pause() = 0;
};

struct Measurement {
  double loop_seconds = 0;                   // largest over ranks, pauses left out
  std::vector<double> step_seconds;          // largest over ranks, of each timed update
  std::vector<std::vector<double>> by_rank;  // [rank][update]
  std::vector<WindowResult> windows;         // of the timed updates
  double first_loss = 0;                     // of the run's first update, warm-up included
  double waiting_seconds = 0;                // in waits for communication, per update, largest over ranks
  double data_seconds = 0;                   // blocked on data, per update, largest over ranks
  struct Blocked {
    double waiting_seconds = 0, deciding_seconds = 0, data_seconds = 0;
  };
  std::vector<Blocked> blocked;  // of each rank, per update
  std::int64_t allocations = 0;  // ours, in the timed loop, largest over ranks
  bool stopped = false;          // a signal asked for an early end, or a pause did
  std::int64_t counted = 0;      // loss terms (tokens or samples) processed in the timed loop
  Measured<std::int64_t> pss_peak;
};

/// Collective.
Measurement measure(Rig& rig, Communicator& world, std::int64_t warmup, std::int64_t steps, BetweenUpdates& between);

/// Small collectives on doubles outside of the timed loop, on memory of their own.
class HostExchange {
 public:
  explicit HostExchange(Communicator& world, std::size_t bytes = std::size_t(1) << 22);
  void sync();
  double max(double value);
  double sum(double value);
  /// [rank][i]; every rank gives equally many.
  std::vector<std::vector<double>> gather(std::vector<double> const& mine);
  /// Every rank's text, of any length.
  std::vector<std::string> gather_texts(std::string_view mine);
  Communicator& world() { return world_; }
  Arena& arena() { return arena_; }
  Stream& stream() { return stream_; }

 private:
  Communicator& world_;
  Pages pages_;
  Ledger ledger_;
  HostStream stream_{0};
  Arena arena_;
};

}  // namespace shardmark
