#pragma once
// How pictures name what they show. Internal to core/schedule.

#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace shardmark {

/// F forward, B backward or its input half, W weight half, C recomputation, R reduction, U update.
char letter(Do what);

/// Numbers each run of blocks that lie on one lane: the chunks that refine() made them from, or what looks the same.
std::vector<int> runs_of(std::vector<int> const& lane_of_block);

/// The lane of each run.
std::vector<int> lanes_of_runs(std::vector<int> const& lane_of_block);

/// Which of its lane's chunks a chunk is: "" when it is the only one, then a, b, c ...
std::vector<std::string> chunk_suffixes(std::vector<int> const& lane_of_chunk);

}  // namespace shardmark
