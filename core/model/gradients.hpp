#pragma once
// Sums of leaf gradients under one SumOrder.
//
// A leaf is the gradient of one (replica, micro-batch, use site). With Fold::tree each leaf is computed into a buffer of its own and
// merged along the canonical tree (at most floor(log2 M) + 2 buffers live, validation rule 4); with Fold::loop the leaves of one
// replica accumulate where they are computed. The total lands in the slab: all segments side by side in the order in which backward
// completes them, so that a bucket is one contiguous range.
//
// With Inside::replicas a leaf is reduced over the replicas before it is folded: the leaves of one micro-batch lie side by side too.

#include <map>
#include <memory_resource>
#include <vector>

#include "backend/backend.hpp"
#include "base/sums.hpp"
#include "model/shards.hpp"
#include "model/spec.hpp"

namespace shardmark {

class Gradients {
 public:
  /// @param order   segments of this rank, in backward order
  /// @param shards  cut_gradients(): leaves are whole, sums are this rank's pieces
  Gradients(ModelSpec const& spec, std::vector<Segment> const& order, SumOrder sum, SumShape leaves, DType dtype, Shards shards,
            Arena& arena, Backend& ops, Stream& stream);

  /// Where the leaf that is being computed goes, and whether it replaces or adds.
  View leaf(Segment segment) const { return entry(segment).current; }
  Write write(Segment segment) const { return entry(segment).write; }
  /// Before the backward that computes leaf `leaf` of the window.
  void begin(Segment segment, int leaf, Stream& stream);
  /// Back to a leaf that was begun, when several are being computed in turns.
  void resume(Segment segment, int leaf);
  /// After it: merges what the tree allows.
  void fold(Segment segment, int leaf, Stream& stream);
  /// All leaves of the window have been folded.
  bool complete(Segment segment) const { return entry(segment).tree.complete(); }
  /// Forgets the window's leaves; the next begin() starts a new sum.
  void restart();

  /// The whole sum of one segment, without padding. @pre not cut_gradients()
  View total(Segment segment) const;
  /// Of the sum over replicas, what this rank updates: all of it, or its piece without padding.
  View own(Segment segment) const;
  /// Consecutive segments as one tensor, padding included: what a bucket's reduction works on. With Inside::replicas the leaves of the
  /// micro-batch that was begun last.
  Tensor range(Segment first, Segment last) const;
  /// Where the gradient of a unit ends: the lowest slot that this rank holds, once the others are added to it.
  Segment summed(UnitId unit) const;
  /// The two ends of a reduce-scatter: this rank's leaf or sum, padding included, and this rank's piece of the sum over replicas.
  struct Scatter {
    Tensor whole, piece;
  };
  Scatter scatter(Segment segment) const;
  std::vector<Segment> const& order() const { return order_; }

 private:
  struct Entry {
    std::int64_t offset = 0, elements = 0, stored = 0;  // stored: of its sum here, padding included
    CanonicalTree tree;
    std::vector<std::pair<int, Tensor>> partial;  // lowest leaf -> buffer, but for leaf 0, which is the slab's
    std::vector<int> folded;                      // leaves, by node: under Fold::loop any of them may be the first
    View current;
    Tensor whole;  // cut_gradients(): the leaf that is being made or reduced
    int node = 0;  // the sum that it goes to
    Write write = Write::overwrite;
  };
  bool first_of_node(Entry const& entry, int leaf) const;
  Entry const& entry(Segment segment) const { return entries_[index(segment)]; }
  Entry& entry(Segment segment) { return entries_[index(segment)]; }
  std::size_t index(Segment segment) const;
  int node_of(int leaf) const;
  /// Leaves are reduced one by one, a bucket at a time, before they are folded.
  bool reduces_leaves() const { return sum_.inside == Inside::replicas && leaves_.outer == 1 && !shards_.cut_gradients(); }
  Tensor room(Entry const& entry, int node, Stream& stream);
  /// A node's sum: the whole without padding, or this rank's piece with it.
  View buffer(Entry const& entry, int node) const;
  Tensor storage(Entry const& entry, int node) const;

  SumOrder sum_;
  SumShape leaves_;
  DType dtype_;
  Shards shards_;
  Arena& arena_;
  Backend& ops_;
  std::vector<Segment> order_;
  std::vector<Entry> entries_;
  Tensor slab_;
  int open_node_ = 0;
  Tensor open_;  // reduces_leaves(): all segments of that node, side by side
};

}  // namespace shardmark
