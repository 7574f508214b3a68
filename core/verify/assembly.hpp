#pragma once
// Small exchanges between the ranks of one proof, in memory of their own: the arena of what is proven sees nothing of them.

#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace shardmark {

class Assembly {
 public:
  explicit Assembly(Communicator& world);
  int rank() const { return world_.rank(); }
  int ranks() const { return world_.size(); }

  /// Every rank's `mine`, in rank order; equally long on all.
  std::vector<double> gather(std::span<double const> mine);
  /// Sums over ranks.
  void sum(std::span<double> values);
  /// The largest of every rank's values; NaN when any is.
  void maximum(std::span<double> values);
  /// Rank 0's bytes everywhere.
  void from_first(std::span<std::byte> bytes);

 private:
  Communicator& world_;
  Pages pages_;
  Region slab_;
  Ledger ledger_;
  HostStream stream_{0};
  Arena arena_;
};

}  // namespace shardmark
