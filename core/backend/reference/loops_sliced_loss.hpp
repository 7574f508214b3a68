#pragma once
// Softmax cross-entropy over slices of the vocabulary: what one slice knows, and what follows from the parts of all.

#include <algorithm>
#include <limits>

#include "backend/reference/loops_loss.hpp"

namespace shardmark::reference {

/// Where the target is, as SoftmaxPart says it.
enum TargetPlace : std::uint8_t { elsewhere = 0, here = 1, here_and_highest = 2 };

/// Column of the target in the slice [first, first + columns); -1: it lies elsewhere or isn't counted.
inline std::int64_t target_column(View const& target, std::int64_t row, std::int64_t first, std::int64_t columns) {
  std::int64_t const at = target.as<std::int32_t>()[row] - first;
  return target.as<std::int32_t>()[row] < 0 || at < 0 || at >= columns ? -1 : at;
}

/// One row over all slices.
struct MergedRow {
  double highest = 0, sum = 0, wanted = 0;
  bool correct = false;
  double loss() const { return highest + std::log(sum) - wanted; }
};

template <class A>
MergedRow merge_row(View const& parts, std::int64_t r) {
  std::int64_t const slices = parts.shape[0], rows = parts.shape[1];
  auto part = [&](std::int64_t s) { return parts.as<A>() + (s * rows + r) * softmax_part_size; };
  MergedRow out{.highest = std::numeric_limits<double>::lowest()};
  for (std::int64_t s = 0; s < slices; ++s) out.highest = std::max(out.highest, double(part(s)[1]));
  out.sum = tree_sum<double>(slices, [&](std::int64_t s) { return double(part(s)[0]) * std::exp(double(part(s)[1]) - out.highest); });
  int holders = 0;
  bool decided = false;  // by the first slice that has the highest: the lowest index wins
  for (std::int64_t s = 0; s < slices; ++s) {
    holders += part(s)[3] == A(elsewhere) ? 0 : 1;
    out.wanted += double(part(s)[2]);
    if (decided || double(part(s)[1]) != out.highest) continue;
    decided = true;
    out.correct = part(s)[3] == A(here_and_highest);
  }
  expect(holders == 1, "sliced_cross_entropy: a target lies outside the vocabulary");
  return out;
}

template <class T>
void softmax_part(SoftmaxPart const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.logits), rows = rows_of(o.logits);
  for (std::int64_t r = 0; r < rows; ++r) {
    T const* const x = row<T>(o.logits, r);
    A* const part = o.part.as<A>() + r * softmax_part_size;
    std::int64_t const best = argmax(x, n), target = target_column(o.target, r, o.first, n);
    A const highest = n == 0 ? A(std::numeric_limits<float>::lowest()) : A(x[best]);
    A sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += std::exp(A(x[j]) - highest);
    part[0] = sum;
    part[1] = highest;
    part[2] = target < 0 ? A(0) : A(x[target]);
    part[3] = A(target < 0 ? elsewhere : target == best ? here_and_highest : here);
  }
}

template <class T>
void sliced_cross_entropy(SlicedCrossEntropy const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.logits);
  A const scale = A(o.scale);
  double counted = 0, correct = 0;
  auto row_loss = [&](std::int64_t r) {
    T const* const x = row<T>(o.logits, r);
    T* const dx = o.dlogits ? row<T>(o.dlogits, r) : nullptr;
    if (o.target.as<std::int32_t>()[r] == -1) {
      for (std::int64_t j = 0; dx != nullptr && j < n; ++j) dx[j] = T(0);
      return 0.0;
    }
    MergedRow const merged = merge_row<A>(o.parts, r);
    A const highest = A(merged.highest), sum = A(merged.sum);
    std::int64_t const target = target_column(o.target, r, o.first, n);
    for (std::int64_t j = 0; dx != nullptr && j < n; ++j) dx[j] = T((std::exp(A(x[j]) - highest) / sum - A(j == target ? 1 : 0)) * scale);
    counted += 1;
    correct += merged.correct ? 1 : 0;
    return merged.loss();
  };
  double const loss = tree_sum<double>(rows_of(o.logits), row_loss);
  add_tally(o.tally, loss, counted, correct);
}

}  // namespace shardmark::reference
