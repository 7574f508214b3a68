#pragma once
// The status board and the watchdog: no hang. Each rank writes what it does; a rank whose heartbeat is silent for longer than the
// time-out ends the job with every rank's last action, without calling MPI.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"

namespace shardmark {

/// One rank's line on the board; lives in memory that all ranks of a node can read. Lock-free.
struct alignas(128) StatusLine {
  std::atomic<std::uint64_t> heartbeat{0};  // grows while the rank makes progress
  std::atomic<std::int64_t> step{-1};
  std::atomic<std::uint32_t> sequence{0};   // odd while `text` is being written
  std::atomic<std::uint32_t> state{0};      // RankState
  std::atomic<char> text[88]{};             // last action
};
enum class RankState : std::uint32_t { starting, working, waiting, done, failed };

class StatusBoard {
 public:
  /// On memory of one node. `lines` has `ranks` entries that outlive the board.
  StatusBoard(StatusLine* lines, int ranks, int me, std::string host);
  void set(std::int64_t step, RankState state, std::string_view action);
  void beat();
  /// One row per rank: rank, host, state, step, seconds since its heartbeat moved (as seen from here), last action.
  std::string table() const;
  int ranks() const;
  StatusLine& line(int rank) const;

 private:
  StatusLine* lines_;
  int ranks_, me_;
  std::string host_;
};

/// Shared memory for a board: a file mapped by all ranks of this node (unlinked at once), or plain memory for threads.
class BoardMemory {
 public:
  static BoardMemory for_threads(int ranks);
  /// Collective over `world`; every member on one node maps the same lines; on several nodes each node has its own (by host name).
  static BoardMemory for_processes(Communicator& world, Arena& arena, Stream& stream);
  StatusLine* lines() const;

 private:
  std::shared_ptr<StatusLine[]> lines_;
};

/// A thread that watches the board. A heartbeat that doesn't move for `timeout_seconds` while its rank isn't done: prints the board
/// on stderr, naming the silent rank (the one whose state is not `waiting`, or the oldest heartbeat), calls `last_words`, and ends the process with
/// exit code 3 (_exit). SIGTERM and SIGINT only set a flag that stop_requested() returns; a second signal, or `grace_seconds` without an end, ends the process after printing the board.
class Watchdog {
 public:
  Watchdog(StatusBoard& board, double timeout_seconds, void (*last_words)(char const* state, void*), void* argument);
  ~Watchdog();
  Watchdog(Watchdog const&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void install_signal_flags();
/// Signal number that asked for a stop, or 0.
int stop_requested();

}  // namespace shardmark
