#pragma once
// The norm of gradients whose sums are shared (validation rule 13): the canonical tree over the full tensors, whatever the pieces are.
// Ranks exchange sums of leaves of 1,024 elements; a leaf that a boundary between pieces cuts is exchanged raw, and summed by the rank that
// has its first element. Then every rank finishes the same tree.

#include <vector>

#include "comm/communicator.hpp"
#include "model/store.hpp"

namespace shardmark {

/// Leaves of a tensor.
constexpr std::int64_t norm_leaves(std::int64_t elements) { return (elements + norm_leaf - 1) / norm_leaf; }

class SharedNorms {
 public:
  /// @param sharers  the ranks whose pieces make the whole
  /// @param leaves   f64: the leaves of all parameters of the units that `store` holds, one after another
  SharedNorms(ParameterStore& store, Communicator& sharers, Tensor leaves, Backend& ops, Arena& arena, Stream& stream);
  /// Sums of squares of the gradients in `store` go to `leaves`. Collective.
  void take();

 private:
  /// Leaves side by side.
  struct Leaves {
    UnitId unit;
    Range where;         // flat in the unit
    std::int64_t first;  // position among all leaves
  };
  void find(UnitId unit, ParamSpec const& param, std::int64_t first_leaf);
  int owner(UnitId unit, std::int64_t element) const;
  /// Elements of the unit that this rank has, of its part of the sum.
  View mine(UnitId unit, Range where) const;
  void exchange_cut_leaves();
  View row(std::size_t cut_leaf) const;
  void sum(Tensor const& tensor);

  ParameterStore& store_;
  Communicator& sharers_;
  Backend& ops_;
  Stream& stream_;
  std::vector<Leaves> whole_;  // that are here alone
  std::vector<Leaves> cut_;    // one leaf each, on several ranks
  Tensor leaves_, raw_;        // raw: a row for each cut leaf
};

}  // namespace shardmark
