#include "metrics/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "metrics/host.hpp"

namespace shardmark {
namespace {

/// Gives each thread of a node a core of its own as far as that is possible: a maximum matching by augmenting paths. A thread that finds
/// none proves, by the cores that its search reached, who is crowded (Hall's theorem): those cores belong to the ranks that have them and
/// to its own.
class CoreMatching {
 public:
  explicit CoreMatching(std::vector<Placement const*> ranks) : ranks_(std::move(ranks)) {}

  std::vector<Crowding> crowded() {
    std::set<std::size_t> without;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (int thread = 0; thread < ranks_[r]->threads; ++thread) {
        reached_.clear();
        if (!place(r)) without.insert(r);
      }
    }
    std::vector<Group> groups;
    for (std::size_t r : without) merge(groups, around(r));
    std::vector<Crowding> out;
    for (Group const& group : groups) out.push_back(describe(group));
    return out;
  }

 private:
  struct Group {
    std::set<std::size_t> members;
    std::set<int> cores;
  };

  bool place(std::size_t r) {
    for (int core : ranks_[r]->cores) {
      if (!reached_.insert(core).second) continue;
      auto const owner = owner_.find(core);
      if (owner == owner_.end() || place(owner->second)) {
        owner_[core] = r;
        return true;
      }
    }
    return false;
  }

  /// Whom a thread of rank r would have to share with. The matching is at its maximum, so the search fails.
  Group around(std::size_t r) {
    reached_.clear();
    invariant(!place(r), "a maximum matching has no augmenting path");
    Group group{{r}, reached_};
    for (int core : reached_) group.members.insert(owner_.at(core));
    return group;
  }

  /// Adds a group; those that it has cores in common with become one with it.
  static void merge(std::vector<Group>& groups, Group added) {
    auto const touches = [&](Group const& group) {
      return std::any_of(group.cores.begin(), group.cores.end(), [&](int core) { return added.cores.contains(core); });
    };
    for (auto group = groups.begin(); group != groups.end();) {
      if (touches(*group)) {
        added.members.merge(group->members);
        added.cores.merge(group->cores);
        group = groups.erase(group);
      } else {
        ++group;
      }
    }
    groups.push_back(std::move(added));
  }

  Crowding describe(Group const& group) const {
    Crowding out;
    out.node = ranks_.front()->node;
    out.cores.assign(group.cores.begin(), group.cores.end());
    for (std::size_t member : group.members) {
      out.ranks.push_back(ranks_[member]->rank);
      out.threads += ranks_[member]->threads;
    }
    std::sort(out.ranks.begin(), out.ranks.end());
    return out;
  }

  std::vector<Placement const*> ranks_;
  std::map<int, std::size_t> owner_;  // core -> index of the rank that has it
  std::set<int> reached_;             // cores that the current search has looked at
};

}  // namespace

std::string Crowding::text() const {
  return fmt::format("rank{} {} on {} share core{} {}", ranks.size() == 1 ? "" : "s", format_cpus(ranks), node,
                     cores.size() == 1 ? "" : "s", format_cpus(cores));
}

std::vector<Crowding> find_crowding(std::vector<Placement> const& placements) {
  std::map<std::string, std::vector<Placement const*>> nodes;
  for (Placement const& placement : placements) nodes[placement.node].push_back(&placement);
  std::vector<Crowding> all;
  for (auto& [node, ranks] : nodes) {
    for (Crowding& crowding : CoreMatching(ranks).crowded()) all.push_back(std::move(crowding));
  }
  return all;
}

int ranks_per_core(std::vector<Crowding> const& crowding) {
  int most = 1;
  for (Crowding const& group : crowding) most = std::max(most, group.per_core());
  return most;
}

}  // namespace shardmark
