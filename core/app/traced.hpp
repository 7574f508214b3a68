#pragma once
// A few more updates after the timed ones, with a span per action: phases of a step, and the trace for Perfetto.

#include "app/bench.hpp"
#include "app/hooks.hpp"

namespace shardmark {

enum class Gather : std::uint8_t { no, yes };

struct TracedUpdates {
  record::PhasesSeconds phases;                 // median over the traced updates, largest over ranks
  std::vector<std::vector<TraceSpan>> by_rank;  // on every rank, since the first began; empty unless gathered
};
/// Runs traced_updates global batches. Collective.
TracedUpdates trace_updates(Rig& rig, TraceHook& hook, Communicator& world, Gather gather);
inline constexpr int traced_updates = 3;

/// All ranks' spans for Perfetto (Chrome trace format). A trace that can't be written ends no run: stderr says it.
void write_trace(std::string const& file, std::vector<std::vector<TraceSpan>> const& by_rank);

}  // namespace shardmark
