#pragma once
// The status board and the watchdog: no hang. Each rank writes what it does; a rank whose heartbeat is silent for longer than the
// time-out ends the job with every rank's last action, without calling MPI.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"

namespace shardmark {

/// absent: no rank writes this line (it runs on another node).
enum class RankState : std::uint32_t { absent, starting, working, waiting, done, failed };
std::string_view name(RankState state);

/// One rank's line on the board; lives in memory that all ranks of a node can read. Lock-free.
struct alignas(128) StatusLine {
  std::atomic<std::uint64_t> heartbeat{0};  // grows while the rank lives, also while it waits
  std::atomic<std::uint64_t> work{0};       // grows while the rank does something itself
  std::atomic<std::int64_t> step{-1};
  std::atomic<std::uint32_t> sequence{0};  // odd while `text` is being written
  std::atomic<RankState> state{RankState::absent};
  std::atomic<std::uint32_t> alarm{0};   // line 0: how many watchdogs of this board end their rank
  std::atomic<std::int32_t> process{0};  // its id on this node
  std::atomic<char> text[76]{};          // last action
};

class StatusBoard {
 public:
  /// On memory of one node. `lines` has `ranks` entries that outlive the board. Rank `me` becomes present.
  StatusBoard(StatusLine* lines, int ranks, int me, std::string host);
  void set(std::int64_t step, RankState state, std::string_view action);
  /// This rank lives, and works unless its state is `waiting`. For long work between two actions.
  void beat();
  /// This rank lives, and waits for others whatever its state says; for while_waiting().
  void beat_waiting();
  /// One row per rank: rank, host, state, step, seconds since its heartbeat moved (as the watchdog sees it), last action.
  std::string table(std::span<double const> silent_seconds = {}) const;
  /// The last action as a whole, never half of two.
  std::string action(int rank) const;
  int ranks() const { return ranks_; }
  StatusLine& line(int rank) const { return lines_[rank]; }
  std::string const& host() const { return host_; }

 private:
  StatusLine* lines_;
  int ranks_, me_;
  std::string host_;
};

/// Shared memory for a board: a file without a name mapped by all ranks of this node, or plain memory for threads.
class BoardMemory {
 public:
  static BoardMemory for_threads(int ranks);
  /// Collective over `world`; every member on one node maps the same lines; on several nodes each node has its own (by host name). Where
  /// processes can't open each other's memory (containers), each has lines of its own and is watched by itself alone.
  static BoardMemory for_processes(Communicator& world, Arena& arena, Stream& stream);
  StatusLine* lines() const { return lines_.get(); }

 private:
  explicit BoardMemory(std::shared_ptr<StatusLine[]> lines) : lines_(std::move(lines)) {}
  std::shared_ptr<StatusLine[]> lines_;
};

/// A thread that watches the board. It prints the board on stderr, calls `last_words`, and ends the process with exit code 3 (_exit) when
///   - a rank that isn't done has lost its process (killed, crashed): at once, before the launcher ends the others;
///   - a rank that isn't done is silent: its heartbeat doesn't move for `timeout_seconds` (stopped, killed, lost in one operation);
///   - nobody works: all ranks wait for so long (ten times as long when some ranks are on other nodes, whose work isn't seen here);
///   - a stop was asked for by SIGTERM or SIGINT and `grace_seconds` passed without an end, or a second signal came.
/// The watchdogs of one board end together: one prints, all say their last words ("failed" or "stopped").
class Watchdog {
 public:
  Watchdog(StatusBoard& board, double timeout_seconds, void (*last_words)(char const* state, void*), void* argument,
           double grace_seconds = 20);
  ~Watchdog();
  Watchdog(Watchdog const&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// SIGTERM and SIGINT only set a flag from now on. @pre called before any other thread is started, MPI's among them
void install_signal_flags();
/// Signal number that asked for a stop, or 0.
int stop_requested();

}  // namespace shardmark
