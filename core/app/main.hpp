#pragma once
// The main function that all strategies' programs share.

#include "app/strategy.hpp"
#include "run/watchdog.hpp"

namespace shardmark {

/// Parses, refuses, starts the ranks (none for plan, threads, MPI, or this process alone), runs the command. @returns the exit code
int run_strategy(Strategy const& strategy, int argc, char** argv);

/// What a command gets on each rank.
struct RankContext {
  Options const& options;
  Strategy const& strategy;
  Communicator& world;
  StatusBoard& board;
  bool prints() const { return world.rank() == 0; }
};

// The commands. Collective over the world; the exit code is the same on every rank.
Exit run_plan(Options const& options, Strategy const& strategy, int ranks);
Exit run_verify(RankContext const& context);
Exit run_bench(RankContext const& context);
/// --dry-run: every default expanded, where the ranks are, what they need; no work.
Exit run_dry(RankContext const& context);

/// Starts `ranks` as the options say and runs `body` on each; turns exceptions into one message and the documented exit code.
int run_ranks(Options const& options, int& argc, char**& argv, Exit (*body)(RankContext const&), Strategy const& strategy);

/// Prints what went wrong once per job, not once per rank, and returns the exit code.
int report_before_start(Error const& error);

}  // namespace shardmark
