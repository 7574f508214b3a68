#pragma once

#include "app/strategy.hpp"

namespace shardmark {

/// On several ranks: R replicas against R micro-batches of one process, bit for bit, and a table of what breaks that. On one rank: nothing.
/// Collective.
Supplement compare_both_ways(RankContext const& context);

}  // namespace shardmark
