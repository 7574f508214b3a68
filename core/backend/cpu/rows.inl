#pragma once
// Passes over one row: layer normalisation and softmax cross-entropy. Sums go by the column index alone.

#include <cmath>
#include <limits>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/vec_math.hpp"

namespace shardmark::cpu {
namespace {

template <class V, class T = typename V::Scalar>
void layer_norm_row(T const* x, T const* gamma, T const* beta, T* y, T* mean_out, T* rstd_out, double epsilon, std::int64_t n) {
  T const count = n > 0 ? T(n) : T(1);
  T const mean = sum_vectors<V>(n, [=](std::int64_t i, auto part) { return V::load(x + i, part); }) / count;
  V const m = V::set(mean);
  T const squares = sum_vectors<V>(n, [=](std::int64_t i, auto part) {
    V const apart = V::merge(part, V::load(x + i, part) - m, V::set(0));
    return apart * apart;
  });
  T const rstd = T(1 / std::sqrt(double(squares / count) + epsilon));
  V const r = V::set(rstd);
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    fma(V::load(gamma + i, part), (V::load(x + i, part) - m) * r, V::load(beta + i, part)).store(y + i, part);
  });
  *mean_out = mean;
  *rstd_out = rstd;
}

template <class V, class T = typename V::Scalar>
void layer_norm_input_row(T const* dy, T const* x, T const* gamma, T mean, T rstd, T* dx, std::int64_t n) {
  if (n == 0) return;
  V const m = V::set(mean), r = V::set(rstd);
  auto g = [=](std::int64_t i, auto part) { return V::load(dy + i, part) * V::load(gamma + i, part); };
  auto normal = [=](std::int64_t i, auto part) { return (V::load(x + i, part) - m) * r; };
  T const mean_g = sum_vectors<V>(n, g) / T(n);
  T const mean_g_normal = sum_vectors<V>(n, [=](std::int64_t i, auto part) { return g(i, part) * normal(i, part); }) / T(n);
  V const a = V::set(mean_g), b = V::set(-mean_g_normal);
  each_vector<V>(n, [=](std::int64_t i, auto part) { (r * fma(normal(i, part), b, g(i, part) - a)).store(dx + i, part); });
}

template <class V, class T = typename V::Scalar>
void layer_norm_weight_row(T const* dy, T const* x, T mean, T rstd, T* dgamma, T* dbeta, std::int64_t n) {
  V const m = V::set(mean), r = V::set(rstd);
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    V const g = V::load(dy + i, part);
    fma(g, (V::load(x + i, part) - m) * r, V::load(dgamma + i, part)).store(dgamma + i, part);
    (V::load(dbeta + i, part) + g).store(dbeta + i, part);
  });
}

template <class V, class T = typename V::Scalar>
T largest_in_row(T const* x, std::int64_t n) {
  V const lowest = V::set(-std::numeric_limits<T>::infinity());
  V best[2] = {lowest, lowest};
  each_vector<V>(n, [&](std::int64_t i, auto part) {
    V& b = best[i / V::lanes % 2];
    b = max(b, V::merge(part, V::load(x + i, part), lowest));
  });
  return max(best[0], best[1]).largest();
}

/// e^(x - highest), stored when wanted; the sum in fp64 over blocks of columns, so that long rows of floats lose nothing.
template <class V, class T = typename V::Scalar>
double exponentials(T const* x, T highest, T* out, std::int64_t n) {
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

template <class V, class T = typename V::Scalar>
RowLoss cross_entropy_row(T const* logits, std::int64_t target, double scale, T* dlogits, std::int64_t n) {
  T const highest = largest_in_row<V>(logits, n), wanted = logits[target];
  RowLoss row;
  // The lowest index wins: the target is the answer if it is the largest and none before it is as large.
  row.correct = wanted == highest;
  for (std::int64_t j = 0; row.correct && j < target; ++j) row.correct = logits[j] != highest;
  double const sum = exponentials<V>(logits, highest, dlogits, n);
  row.loss = std::log(sum) + (double(highest) - double(wanted));
  if (dlogits == nullptr) return row;
  double const target_probability = double(dlogits[target]) / sum;
  V const factor = V::set(T(scale / sum));
  each_vector<V>(n, [=](std::int64_t i, auto part) { (V::load(dlogits + i, part) * factor).store(dlogits + i, part); });
  dlogits[target] = T((target_probability - 1) * scale);
  return row;
}

}  // namespace
}  // namespace shardmark::cpu
