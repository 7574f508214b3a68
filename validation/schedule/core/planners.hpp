#pragma once
// Small planners and models that exercise the passes and the checker. The strategies have planners of their own.

#include <string>
#include <vector>

#include "schedule/check.hpp"
#include "schedule/schedule.hpp"
#include "schedule/simulate.hpp"

namespace shardmark::test {

Schedule plan_gpipe(int stages, int micros);
Schedule plan_1f1b(int stages, int micros);
/// Backward in two parts, ZB-H1 (Qi et al., "Zero bubble pipeline parallelism", ICLR 2024).
Schedule plan_split(int stages, int micros);
/// Interleaved 1F1B (Narayanan et al., SC 2021); micros must be a multiple of stages.
Schedule plan_interleaved(int stages, int micros, int chunks);

enum class Delay { stash, vertical, two_buffers };
/// PipeDream without a flush. `micros` per update: 1 in stash and vertical.
Schedule plan_async(int stages, int micros, Delay delay);

/// A recomputation before every backward.
Schedule with_recomputation(Schedule coarse);

/// `count` blocks of one unit each; sizes grow with the number. Tied: the last block also uses the first one's unit.
enum class Tied { no, yes };
std::vector<BlockShape> chain(int count, Tied tied = Tied::no);

/// `blocks_per_chunk` blocks a chunk.
std::vector<int> even_partition(Schedule const& coarse, int blocks_per_chunk);

struct Lowered {
  Schedule schedule;
  std::vector<BlockShape> blocks;
};
/// All passes, with reduction over the data axis.
Lowered lowered(Schedule const& coarse, int blocks_per_chunk, Tied tied = Tied::no, Overlap overlap = Overlap::on);

/// A block takes forward, input and weight units of time; transfers and everything else take none.
struct BlockTimes {
  double forward = 1, input = 1, weight = 0;
};
Costs compute_only(BlockTimes times);

}  // namespace shardmark::test
