#pragma once
// Small models, and schedules brought all the way to the executor, that exercise the passes and the checker.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "schedule/check.hpp"
#include "schedule/planners.hpp"
#include "schedule/render.hpp"
#include "schedule/simulate.hpp"
#include "schedule/text.hpp"

namespace shardmark::test {

/// One planner with one set of options.
struct NamedPlanner {
  std::string test_name;
  std::function<Schedule(PipelineShape)> plan;
  std::vector<int> chunks = {1};   // per stage, that it is tested with
  int least_micros_per_stage = 0;  // it refuses fewer
};
inline void PrintTo(NamedPlanner const& planner, std::ostream* out) { *out << planner.test_name; }
std::vector<NamedPlanner> all_planners();
/// plan_pipedream() with decisions that all stages take together.
Schedule plan_joint(PipelineShape shape, Delay delay);
/// Calls `body` with every shape of p 1..8, m 1..16 and the planner's chunks with enough micro-batches.
void over_shapes(NamedPlanner const& planner, std::function<void(PipelineShape)> const& body);

/// A recomputation before every backward.
Schedule with_recomputation(Schedule coarse);

/// `count` blocks of one unit each; sizes grow with the number. Tied: the last block also uses the first one's unit.
enum class Tied { no, yes };
std::vector<BlockShape> chain(int count, Tied tied = Tied::no);
/// Whether weights may be tied over its lanes.
Tied can_tie(Schedule const& coarse);

/// `blocks_per_chunk` blocks a chunk.
std::vector<int> even_partition(Schedule const& coarse, int blocks_per_chunk);

struct Lowered {
  Schedule schedule;
  std::vector<BlockShape> blocks;
};
/// All passes, with reduction over the data axis.
Lowered lowered(Schedule const& coarse, int blocks_per_chunk, Tied tied = Tied::no, Overlap overlap = Overlap::on,
                Matching matching = Matching::by_name);

/// Every chunk or block takes the same time; transfers and everything else take none.
Costs compute_only(ChunkSeconds seconds);

}  // namespace shardmark::test
