#pragma once
// A few more updates after the timed ones, with a span per action: phases of a step, and the trace for Perfetto.

#include "app/bench.hpp"
#include "app/hooks.hpp"

namespace shardmark {

/// Median over the traced updates, largest over ranks. Collective. With `file`, rank 0 writes all ranks' spans there (Chrome trace format).
record::PhasesSeconds trace_updates(Rig& rig, TraceHook& hook, Communicator& world, std::string const& file);

}  // namespace shardmark
