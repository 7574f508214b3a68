#pragma once
// --recompute: what forwards keep for their backwards.

#include <optional>

#include "app/options.hpp"
#include "schedule/recompute.hpp"

namespace shardmark {

/// The rule that the option names for this schedule; absent for none. A budget is no rule: see recompute_budget.hpp. @throws BadRequest
std::optional<KeepRule> recompute_rule(Options const& options, Schedule const& schedule, std::vector<BlockShape> const& blocks);

}  // namespace shardmark
