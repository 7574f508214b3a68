#pragma once
// The order of every sum is data.
//
// The canonical tree T(lo, hi) splits at the largest power of two below hi - lo; a leaf is one gradient.
// Over R replicas of K micro-batches it is always a tree over replicas of trees over micro-batches (validation
// rules 2 and 3). Floating-point addition commutes, so any order of *arrival* gives the same bits.

#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace shardmark {

enum class Fold : std::uint8_t { loop, tree };
enum class Inside : std::uint8_t { micros, replicas };

/// In which order gradients are summed; belongs to the schedule.
struct SumOrder {
  Fold micros = Fold::tree;
  Fold replicas = Fold::tree;
  Inside inside = Inside::micros;  // replicas: reduce over ranks at every micro-batch (ZeRO-2/3, m > 1)
  bool operator==(SumOrder const&) const = default;
};

/// Leaves of one sum: `outer` groups of `inner` leaves; leaf index = group * inner + position.
struct SumShape {
  int outer = 1;
  int inner = 1;
  int leaves() const { return outer * inner; }
  bool operator==(SumShape const&) const = default;
};

/// Size of the left subtree of T over n >= 2 leaves.
constexpr std::int64_t left_of(std::int64_t n) {
  std::int64_t k = 1;
  while (2 * k < n) k *= 2;
  return k;
}

/// ceil(log2 n), the depth of T over n leaves; 0 for n <= 1.
constexpr int tree_depth(std::int64_t n) {
  int depth = 0;
  for (std::int64_t k = 1; k < n; k *= 2) ++depth;
  return depth;
}

/// Which partial sums to merge as leaves arrive, in any order. Holds no values: the caller keeps one buffer for each
/// live node, named by the node's lowest leaf, and `merge(into, from)` adds the buffer of `from` to that of `into`.
/// `into` is always the lower one, so the total ends in the buffer of leaf 0.
class CanonicalTree {
 public:
  explicit CanonicalTree(SumShape shape = {}) : shape_(shape) { live_.reserve(64); }

  /// Leaf `leaf` is complete. Calls merge(int into_leaf, int from_leaf) zero or more times.
  template <class Merge>
  void arrive(int leaf, Merge&& merge) {
    Node node{leaf, leaf + 1};
    expect(leaf >= 0 && leaf < shape_.leaves(), "a leaf outside the sum");
    add(node);
    for (Node sibling; find_sibling(node, sibling);) {
      Node const low = node.lo < sibling.lo ? node : sibling;
      Node const high = node.lo < sibling.lo ? sibling : node;
      merge(low.lo, high.lo);
      remove(low);
      remove(high);
      node = {low.lo, high.hi};
      add(node);
    }
  }
  bool complete() const { return live_.size() == 1 && live_[0].lo == 0 && live_[0].hi == shape_.leaves(); }
  /// Partial sums that hold a buffer now.
  int live() const { return int(live_.size()); }
  SumShape shape() const { return shape_; }
  void reset() { live_.clear(); }

 private:
  struct Node {
    int lo = 0, hi = 0;
  };
  void add(Node node);
  void remove(Node node);
  bool find_sibling(Node node, Node& sibling) const;

  SumShape shape_;
  std::vector<Node> live_;
};

}  // namespace shardmark
