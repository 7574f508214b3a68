#pragma once
// Whether ranks stand in each other's way (case 110 of the reported faults: they share a core after a change of launcher, and only get
// slow).

#include <string>
#include <vector>

namespace shardmark {

/// Where one rank may run.
struct Placement {
  int rank = 0;
  std::string node;  // the boot id, since containers of one kernel have different host names
  std::vector<int> cores;
  int threads = 1;  // that compute
};

/// Ranks that together have fewer cores than threads, on one node.
struct Crowding {
  std::string node;
  std::vector<int> ranks, cores;  // ascending
  int threads = 0;
  int per_core() const { return cores.empty() ? threads : int((std::size_t(threads) + cores.size() - 1) / cores.size()); }
  /// "ranks 0-3 on NODE share core 0"
  std::string text() const;
};

/// One entry for each set of ranks that can't all have cores of their own; none: every thread can.
std::vector<Crowding> find_crowding(std::vector<Placement> const& placements);
/// Largest number of threads that share a core; 1: none do.
int ranks_per_core(std::vector<Crowding> const& crowding);

}  // namespace shardmark
