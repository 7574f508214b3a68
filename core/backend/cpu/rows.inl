#pragma once
// Passes over one row: layer normalisation and softmax cross-entropy. Sums go by the column index alone.

#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/vec_math.hpp"

namespace shardmark::cpu {
namespace {

template <class V, class T = typename V::Scalar>
void layer_norm_row(T const* x, T const* gamma, T const* beta, T* y, typename V::Scalar* mean_out, typename V::Scalar* rstd_out,
                    double epsilon, std::int64_t n) {
  using Sum = typename V::Scalar;
  Sum const count = n > 0 ? Sum(n) : Sum(1);
  Sum const mean = sum_vectors<V>(n, [=](std::int64_t i, auto part) { return V::load(x + i, part); }) / count;
  V const m = V::set(mean);
  Sum const squares = sum_vectors<V>(n, [=](std::int64_t i, auto part) {
    V const apart = V::merge(part, V::load(x + i, part) - m, V::set(0));
    return apart * apart;
  });
  Sum const rstd = Sum(1 / std::sqrt(double(squares / count) + epsilon));
  V const r = V::set(rstd);
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    fma(V::load(gamma + i, part), (V::load(x + i, part) - m) * r, V::load(beta + i, part)).store(y + i, part);
  });
  *mean_out = mean;
  *rstd_out = rstd;
}

template <class V, class T = typename V::Scalar>
void layer_norm_input_row(T const* dy, T const* x, T const* gamma, typename V::Scalar mean, typename V::Scalar rstd, T* dx,
                          std::int64_t n) {
  using Sum = typename V::Scalar;
  if (n == 0) return;
  V const m = V::set(mean), r = V::set(rstd);
  auto g = [=](std::int64_t i, auto part) { return V::load(dy + i, part) * V::load(gamma + i, part); };
  auto normal = [=](std::int64_t i, auto part) { return (V::load(x + i, part) - m) * r; };
  Sum const mean_g = sum_vectors<V>(n, g) / Sum(n);
  Sum const mean_g_normal = sum_vectors<V>(n, [=](std::int64_t i, auto part) { return g(i, part) * normal(i, part); }) / Sum(n);
  V const a = V::set(mean_g), b = V::set(-mean_g_normal);
  each_vector<V>(n, [=](std::int64_t i, auto part) { (r * fma(normal(i, part), b, g(i, part) - a)).store(dx + i, part); });
}

template <class V, class T = typename V::Scalar>
void layer_norm_weight_row(T const* dy, T const* x, typename V::Scalar mean, typename V::Scalar rstd, typename V::Scalar* dgamma,
                           typename V::Scalar* dbeta, std::int64_t n) {
  V const m = V::set(mean), r = V::set(rstd);
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    V const g = V::load(dy + i, part);
    fma(g, (V::load(x + i, part) - m) * r, V::load(dgamma + i, part)).store(dgamma + i, part);
    (V::load(dbeta + i, part) + g).store(dbeta + i, part);
  });
}

template <class V, class T>
typename V::Scalar largest_in_row(T const* x, std::int64_t n) {
  V const lowest = V::set(-std::numeric_limits<typename V::Scalar>::infinity());
  V best[2] = {lowest, lowest};
  each_vector<V>(n, [&](std::int64_t i, auto part) {
    V& b = best[i / V::lanes % 2];
    b = max(b, V::merge(part, V::load(x + i, part), lowest));
  });
  return max(best[0], best[1]).largest();
}

/// Sum of e^(x - highest), in fp64 over blocks of columns, so that long rows of floats lose nothing. `out`, if any, gets the terms.
template <class V, class T>
double exponentials(T const* x, typename V::Scalar highest, typename V::Scalar* out, std::int64_t n) {
  constexpr std::int64_t block = 1024;
  double sum = 0;
  for (std::int64_t from = 0; from < n; from += block)
    sum += double(sum_vectors<V>(smaller(block, n - from), [=](std::int64_t i, auto part) {
      V const e = exp(V::load(x + from + i, part) - V::set(highest));
      if (out != nullptr) e.store(out + from + i, part);
      return V::merge(part, e, V::set(0));
    }));
  return sum;
}

/// The first of a vector's lanes, all alike.
template <class V>
typename V::Scalar any_lane(V v) {
  typename V::Scalar lanes[V::lanes];
  v.store(lanes);
  return lanes[0];
}

/// (softmax - 1) scale, where the target is.
template <class V, class T>
void store_target_gradient(typename V::Scalar wanted, typename V::Scalar highest, double sum, double scale, T* to) {
  using Sum = typename V::Scalar;
  double const probability = double(any_lane(exp(V::set(wanted - highest)))) / sum;
  V::set(Sum((probability - 1) * scale)).store(to, Some{1});
}

/// The target is the answer if it is the largest and none before it is as large: the lowest index wins.
template <class V, class T, class Sum = typename V::Scalar>
bool is_first_of_highest(T const* logits, std::int64_t target, Sum wanted, Sum highest) {
  return wanted == highest && !(target > 0 && largest_in_row<V>(logits, target) == highest);
}

template <class V, class T = typename V::Scalar>
RowLoss cross_entropy_row(T const* logits, std::int64_t target, double scale, T* dlogits, std::int64_t n) {
  using Sum = typename V::Scalar;
  Sum const highest = largest_in_row<V>(logits, n), wanted = V::load(logits + target, Some{1}).sum();
  RowLoss row;
  row.correct = is_first_of_highest<V>(logits, target, wanted, highest);
  // Terms are kept where dlogits can hold them as they are; what would be rounded is computed again.
  constexpr bool kept = std::is_same_v<T, Sum>;
  Sum* terms = nullptr;
  if constexpr (kept) terms = dlogits;
  double const sum = exponentials<V>(logits, highest, terms, n);
  row.loss = std::log(sum) + (double(highest) - double(wanted));
  if (dlogits == nullptr) return row;
  V const factor = V::set(Sum(scale / sum));
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    V const e = kept ? V::load(dlogits + i, part) : exp(V::load(logits + i, part) - V::set(highest));
    (e * factor).store(dlogits + i, part);
  });
  store_target_gradient<V>(wanted, highest, sum, scale, dlogits + target);
  return row;
}

template <class V, class T = typename V::Scalar>
RowPart softmax_part_row(T const* logits, std::int64_t target, std::int64_t n) {
  using Sum = typename V::Scalar;
  Sum const highest = largest_in_row<V>(logits, n);
  RowPart part{.highest = double(highest), .sum = exponentials<V>(logits, highest, nullptr, n)};
  if (target < 0) return part;
  Sum const wanted = V::load(logits + target, Some{1}).sum();
  part.wanted = double(wanted);
  part.target_first = is_first_of_highest<V>(logits, target, wanted, highest);
  return part;
}

template <class V, class T = typename V::Scalar>
void softmax_gradient_row(T const* logits, std::int64_t target, typename V::Scalar highest, double sum, double scale, T* dlogits,
                          std::int64_t n) {
  using Sum = typename V::Scalar;
  Sum const wanted = target < 0 ? Sum(0) : V::load(logits + target, Some{1}).sum();
  V const factor = V::set(Sum(scale / sum));
  each_vector<V>(n,
                 [=](std::int64_t i, auto part) { (exp(V::load(logits + i, part) - V::set(highest)) * factor).store(dlogits + i, part); });
  if (target >= 0) store_target_gradient<V>(wanted, highest, sum, scale, dlogits + target);
}

}  // namespace
}  // namespace shardmark::cpu
