#pragma once
// Sums whose order is data: the canonical tree of base/sums.hpp, and what norms are made of.

#include <cmath>

#include "backend/reference/rows.hpp"
#include "base/sums.hpp"

namespace shardmark::reference {

/// T(lo, hi) over leaf(lo) ... leaf(hi - 1), hi > lo; leaves are asked for once each, ascending.
template <class A, class Leaf>
A tree_sum(std::int64_t lo, std::int64_t hi, Leaf&& leaf) {
  if (hi - lo == 1) return leaf(lo);
  std::int64_t const middle = lo + left_of(hi - lo);
  A const left = tree_sum<A>(lo, middle, leaf);
  return left + tree_sum<A>(middle, hi, leaf);
}

/// The empty sum is +0.
template <class A, class Leaf>
A tree_sum(std::int64_t n, Leaf&& leaf) {
  return n == 0 ? A(0) : tree_sum<A>(0, n, leaf);
}

template <class T>
void sum_tree(SumTree const& o) {
  using A = Accumulator<T>;
  T* const out = o.out.as<T>();
  std::int64_t const n = o.out.elements();
  // All of an element's inputs are read before it is written, so `out` may be any of them.
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = T(tree_sum<A>(std::int64_t(o.in.size()), [&](std::int64_t leaf) { return A(o.in[std::size_t(leaf)].as<T>()[i]); }));
}

template <class T>
void norm_leaves(NormLeaves const& o) {
  T const* const x = o.x.as<T>();
  double* const leaves = o.leaves.as<double>();
  std::int64_t const n = o.x.elements();
  for (std::int64_t leaf = 0; leaf * norm_leaf < n; ++leaf) {
    double sum = 0;
    for (std::int64_t i = leaf * norm_leaf; i < n && i < (leaf + 1) * norm_leaf; ++i) sum += double(x[i]) * double(x[i]);
    leaves[leaf] = sum;
  }
}

inline void tree_total(TreeTotal const& o) {
  double const* const x = o.x.as<double>();
  *o.out.as<double>() = tree_sum<double>(o.x.elements(), [x](std::int64_t i) { return x[i]; });
}

template <class T>
void flag_nonfinite(FlagNonFinite const& o) {
  bool finite = true;
  std::int64_t const n = columns_of(o.x);
  each_row<T>(
      [&](T const* x) {
        for (std::int64_t j = 0; j < n; ++j) finite = finite && std::isfinite(double(x[j]));
      },
      o.x);
  if (!finite) *o.flag.as<double>() += 1;
}

}  // namespace shardmark::reference
