#pragma once
// Losses: sums over rows in the canonical tree, in fp64. The scale enters the gradient here and nowhere else.

#include <cmath>

#include "backend/reference/loops_sums.hpp"

namespace shardmark::reference {

/// Adds {loss, counted, correct} to the tally.
inline void add_tally(View const& tally, double loss, double counted, double correct) {
  double* const t = tally.as<double>();
  t[0] += loss;
  t[1] += counted;
  t[2] += correct;
}

/// The index of the largest element; the lowest wins.
template <class T>
std::int64_t argmax(T const* x, std::int64_t n) {
  std::int64_t best = 0;
  for (std::int64_t j = 1; j < n; ++j)
    if (x[j] > x[best]) best = j;
  return best;
}

template <class T>
void cross_entropy(CrossEntropy const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.logits);
  A const scale = A(o.scale);
  double counted = 0, correct = 0;
  auto row_loss = [&](std::int64_t r) {
    T const* const x = row<T>(o.logits, r);
    T* const dx = o.dlogits ? row<T>(o.dlogits, r) : nullptr;
    std::int64_t const target = o.target.as<std::int32_t>()[r];
    if (target == -1) {
      for (std::int64_t j = 0; dx != nullptr && j < n; ++j) dx[j] = T(0);
      return 0.0;
    }
    expect(target >= 0 && target < n, "cross_entropy: a target lies outside the vocabulary");
    std::int64_t const best = argmax(x, n);
    A const highest = A(x[best]), wanted = A(x[target]);
    A sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += std::exp(A(x[j]) - highest);
    for (std::int64_t j = 0; dx != nullptr && j < n; ++j) dx[j] = T((std::exp(A(x[j]) - highest) / sum - A(j == target ? 1 : 0)) * scale);
    counted += 1;
    correct += best == target ? 1 : 0;
    return double(highest + std::log(sum)) - double(wanted);
  };
  double const loss = tree_sum<double>(rows_of(o.logits), row_loss);
  add_tally(o.tally, loss, counted, correct);
}

template <class T>
void squared_error(SquaredError const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.y), rows = rows_of(o.y);
  A const scale = A(o.scale);
  auto row_loss = [&](std::int64_t r) {
    T const* const y = row<T>(o.y, r);
    T const* const target = row<T>(o.target, r);
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      A const apart = A(y[j]) - A(target[j]);
      sum += double(apart) * double(apart) / 2;
      if (o.dy) row<T>(o.dy, r)[j] = T(apart * scale);
    }
    return sum;
  };
  double const loss = tree_sum<double>(rows, row_loss);
  add_tally(o.tally, loss, double(rows), 0);
}

}  // namespace shardmark::reference
