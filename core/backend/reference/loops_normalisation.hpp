#pragma once
// Layer normalisation (Ba et al. 2016) and column sums.

#include <cmath>

#include "backend/reference/rows.hpp"

namespace shardmark::reference {

template <class T>
void layer_norm(LayerNorm const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.x), rows = rows_of(o.x);
  T const* const gamma = o.gamma.as<T>();
  T const* const beta = o.beta.as<T>();
  for (std::int64_t r = 0; r < rows; ++r) {
    T const* const x = row<T>(o.x, r);
    A sum = 0, squares = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += A(x[j]);
    A const mean = n == 0 ? A(0) : sum / A(n);
    for (std::int64_t j = 0; j < n; ++j) squares += (A(x[j]) - mean) * (A(x[j]) - mean);
    A const rstd = 1 / std::sqrt((n == 0 ? A(0) : squares / A(n)) + A(o.epsilon));
    T* const y = row<T>(o.y, r);
    for (std::int64_t j = 0; j < n; ++j) y[j] = T(A(gamma[j]) * ((A(x[j]) - mean) * rstd) + A(beta[j]));
    o.mean.as<A>()[r] = mean;
    o.rstd.as<A>()[r] = rstd;
  }
}

template <class T>
void layer_norm_input(LayerNormInput const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.x), rows = rows_of(o.x);
  T const* const gamma = o.gamma.as<T>();
  for (std::int64_t r = 0; r < rows; ++r) {
    A const mean = o.mean.as<A>()[r], rstd = o.rstd.as<A>()[r];
    T const* const x = row<T>(o.x, r);
    T const* const dy = row<T>(o.dy, r);
    A sum_g = 0, sum_g_xhat = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      A const g = A(dy[j]) * A(gamma[j]);
      sum_g += g;
      sum_g_xhat += g * ((A(x[j]) - mean) * rstd);
    }
    T* const dx = row<T>(o.dx, r);
    for (std::int64_t j = 0; j < n; ++j) {
      A const g = A(dy[j]) * A(gamma[j]), xhat = (A(x[j]) - mean) * rstd;
      dx[j] = T(rstd * (g - sum_g / A(n) - xhat * (sum_g_xhat / A(n))));
    }
  }
}

template <class T>
void layer_norm_weight(LayerNormWeight const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.x), rows = rows_of(o.x);
  A* const dgamma = o.dgamma.as<A>();
  A* const dbeta = o.dbeta.as<A>();
  if (o.write == Write::overwrite)
    for (std::int64_t j = 0; j < n; ++j) dgamma[j] = dbeta[j] = A(0);
  for (std::int64_t r = 0; r < rows; ++r) {
    A const mean = o.mean.as<A>()[r], rstd = o.rstd.as<A>()[r];
    T const* const x = row<T>(o.x, r);
    T const* const dy = row<T>(o.dy, r);
    for (std::int64_t j = 0; j < n; ++j) {
      dgamma[j] += A(dy[j]) * ((A(x[j]) - mean) * rstd);
      dbeta[j] += A(dy[j]);
    }
  }
}

template <class T>
void column_sum(ColumnSum const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.x);
  A* const y = o.y.as<A>();
  if (o.write == Write::overwrite)
    for (std::int64_t j = 0; j < n; ++j) y[j] = A(0);
  each_row<T>(
      [n, y](T const* x) {
        for (std::int64_t j = 0; j < n; ++j) y[j] += A(x[j]);
      },
      o.x);
}

}  // namespace shardmark::reference
