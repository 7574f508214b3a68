#pragma once
// The record of a run that ends early: state and exit code are written whatever ends it, an exception, the watchdog or a signal.

#include "base/error.hpp"
#include "record/run_folder.hpp"

namespace shardmark {

/// Makes the folder of this process's run, whose record end_run() ends. It outlives the exception that ends the run.
record::RunFolder& begin_run(std::string const& out, record::RunName const& name);

/// Writes the end into the current run's record, if there is one. From any thread.
void end_run(record::State state, Exit code) noexcept;
/// What a watchdog calls; `state` is its word for the end ("failed", "stopped").
void end_run_by_watchdog(char const* state, void*);

}  // namespace shardmark
