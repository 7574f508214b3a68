#pragma once
// Hooks of the executor that programs use: status board, trace, injected faults.

#include <memory>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "metrics/trace.hpp"
#include "run/job.hpp"
#include "run/program.hpp"
#include "run/watchdog.hpp"

namespace shardmark {

/// Writes every action on the board; its heartbeat is the watchdog's proof of life.
class StatusHook final : public Hook {
 public:
  explicit StatusHook(StatusBoard& board) : board_(board) {}
  void before(Program& program, Action const& action, std::int64_t window) override;

 private:
  StatusBoard& board_;
};

/// A span per action while it records; silent in timed steps (docs/method.md).
class TraceHook final : public Hook {
 public:
  explicit TraceHook(std::size_t capacity) : trace_(capacity) {}
  void record(bool on) { recording_ = on; }
  Trace const& trace() const { return trace_; }
  void before(Program& program, Action const& action, std::int64_t window) override;
  void after(Program& program, Action const& action, std::int64_t window) override;

 private:
  Trace trace_;
  bool recording_ = false;
  std::int64_t begin_ns_ = 0;
};

/// A fault on purpose, on one rank, once: so that users see on their own cluster that `verify` can fail (--inject).
class InjectHook final : public Hook {
 public:
  InjectHook(Fault fault, int world_rank) : fault_(std::move(fault)), here_(world_rank == fault_.rank) {}
  void before(Program& program, Action const& action, std::int64_t window) override;
  void after(Program& program, Action const& action, std::int64_t window) override;

 private:
  bool due(std::int64_t window) const { return here_ && !done_ && window + 1 == fault_.step; }
  ParamId target(Program& program) const;
  View gradient(Program& program, ParamId param) const;
  void spoil_gradient(Program& program);

  Fault fault_;
  bool here_, done_ = false;
  std::vector<std::byte> kept_;  // the local gradient, when its reduction is dropped
  bool keeping_ = false;
};

/// @throws BadRequest when the fault names a parameter that the model or the rank's stage lacks, or a rank or update that the run doesn't
/// have.
void require_possible(Fault const& fault, Job const& job, std::int64_t updates);

}  // namespace shardmark
