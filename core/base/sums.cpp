#include "base/sums.hpp"

#include <algorithm>

namespace shardmark {

void CanonicalTree::add(Node node) {
  auto overlaps = [&](Node const& other) { return node.lo < other.hi && other.lo < node.hi; };
  expect(std::none_of(live_.begin(), live_.end(), overlaps), "a leaf arrived twice in one sum");
  live_.push_back(node);
}

void CanonicalTree::remove(Node node) {
  std::erase_if(live_, [&](Node const& other) { return other.lo == node.lo && other.hi == node.hi; });
}

bool CanonicalTree::find_sibling(Node node, Node& sibling) const {
  // Descend from the root to the parent of `node`: first over groups, then inside one group.
  int const inner = shape_.inner;
  int lo = 0, hi = shape_.leaves();
  if (node.lo == lo && node.hi == hi) return false;
  for (;;) {
    int const unit = hi - lo > inner ? inner : 1;
    int const middle = lo + int(left_of((hi - lo) / unit)) * unit;
    Node const left{lo, middle}, right{middle, hi};
    if (node.lo == left.lo && node.hi == left.hi) {
      sibling = right;
      break;
    }
    if (node.lo == right.lo && node.hi == right.hi) {
      sibling = left;
      break;
    }
    (node.lo < middle ? hi : lo) = middle;
  }
  return std::any_of(live_.begin(), live_.end(), [&](Node const& other) { return other.lo == sibling.lo && other.hi == sibling.hi; });
}

}  // namespace shardmark
