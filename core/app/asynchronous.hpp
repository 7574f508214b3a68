#pragma once
// What the stages of a pipeline must ask each other where each decides for itself.

#include <vector>

#include "app/measure.hpp"

namespace shardmark {

/// An end that all ranks agree on. Ranks that decide jointly agree in every decision, and after a step have taken equally many. Stages that
/// decide by themselves have nothing in common but this: each step they learn whether some rank was asked to stop a step earlier.
class StopVote {
 public:
  StopVote(Program& program, HostExchange& exchange)
      : program_(program), exchange_(exchange), flag_(exchange.arena().make(DType::f64, {1}, Book::workspace, exchange.stream())) {}
  StopVote(StopVote const&) = delete;

  /// Collective; after every step.
  bool stop();
  /// Ends what the last stop() began. A run that fails leaves it out: its peers are gone.
  void close() { result(); }

 private:
  bool result();
  Program& program_;
  HostExchange& exchange_;
  Tensor flag_;
  Request request_;
  bool pending_ = false;
};

/// What the last stage saw, on every rank: the others know no losses. Collective.
std::vector<WindowResult> windows_of_last_stage(std::vector<WindowResult> const& mine, Program& program, HostExchange& exchange);

}  // namespace shardmark
