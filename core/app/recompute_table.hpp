#pragma once
// All rules of recomputation in one table: memory against time, predicted and measured; and the curve of the best of all plans as a
// picture.

#include <string>
#include <vector>

#include "app/bench.hpp"
#include "app/recompute_budget.hpp"

namespace shardmark {

/// One rule of --recompute, on one rank.
struct RuleRow {
  std::string rule = {};
  std::int64_t runs_again = 0;              // recomputations of one micro-batch
  std::int64_t planned_bytes = 0;           // activations at their peak, by the dry run
  double planned_time = 1;                  // of a step, relative to none
  std::int64_t measured_bytes = 0;          // 0: not measured
  std::vector<double> measured_times = {};  // of a step, relative to none, one value a round
};

struct RuleTable {
  std::vector<RuleRow> rows;
  std::vector<RuleRow> curve;  // planned: best at each amount of memory
  std::string basis;           // of the times that are predicted and of the costs that budgets are planned with
  int rounds = 0;              // 0: a plan
  std::int64_t warmup = 0, steps = 0;
};

/// From dry runs, and probes of this machine's rates. @pre one rank
RuleTable plan_rules(Options const& options, Strategy const& strategy);

/// Times all rules in rounds of random order, each against none's step of the same round. The forwards' times that predictions and budgets
/// use come from a run of none before. @pre one rank
RuleTable measure_rules(RankContext const& context, std::shared_ptr<Dataset const> const& data);

std::string to_text(RuleTable const& table);
/// Memory against time.
std::string to_svg(RuleTable const& table, std::string const& title);

}  // namespace shardmark
