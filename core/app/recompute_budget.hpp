#pragma once
// --recompute budget: as little recomputation as a limit of activations allows.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "run/job.hpp"
#include "schedule/chain_plans.hpp"

namespace shardmark {

/// How much memory each rank's activations may take at most.
struct MemoryBudget {
  enum class Unit : std::uint8_t { mib, percent, least } unit = Unit::least;  // percent: of what keeping everything takes
  double amount = 0;
};
/// "budget:64", "budget:50%", "budget:least"; absent: another rule. @throws BadRequest
std::optional<MemoryBudget> memory_budget(std::string const& rule);

/// From a refined schedule to the one that is executed.
using Lowering = std::function<Schedule(Schedule const&)>;

/// What a rank of the pipeline can choose from.
struct StagePlans {
  int rank = 0;                  // of the first replica
  int live = 1;                  // micro-batches at once, of equal shares
  std::int64_t input_bytes = 0;  // of each, what the stage before sent; on the first stage it is data
  std::int64_t most_bytes = 0;   // activations where everything is kept
  ChainPlans plans;
};
/// @param job all but the schedule
/// @throws BadRequest where chains of blocks are no model of a rank's memory
std::vector<StagePlans> stage_plans(Options const& options, Job const& job, Schedule const& refined, Lowering const& lowering);

/// `refined` with the recomputations that options.recompute, a budget, asks for. Every rank's activations, as found by a dry run, stay
/// within it. @throws BadRequest when it is too small, with the smallest that isn't
Schedule recompute_within(Options const& options, Job const& job, Schedule const& refined, Lowering const& lowering);

}  // namespace shardmark
