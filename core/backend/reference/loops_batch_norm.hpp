#pragma once
// Batch normalisation (Ioffe and Szegedy 2015) with its statistics exposed, so that they can be merged between.

#include <cmath>

#include "backend/reference/rows.hpp"
#include "base/mutant.hpp"

namespace shardmark::reference {

/// {n, mean[C], M2[C]}, as BatchMoments packs them.
struct Moments {
  double* at;
  std::int64_t channels;
  Moments(View const& packed, std::int64_t row = 0)
      : at(packed.as<double>() + row * packed.shape[packed.rank - 1u]), channels((packed.shape[packed.rank - 1u] - 1) / 2) {}
  double& count() const { return at[0]; }
  double& mean(std::int64_t c) const { return at[1 + c]; }
  double& squares(std::int64_t c) const { return at[1 + channels + c]; }
};

template <class T>
void batch_moments(BatchMoments const& o) {
  using A = Accumulator<T>;
  std::int64_t const rows = rows_of(o.x);
  Moments const m(o.moments);
  m.count() = double(rows);
  for (std::int64_t c = 0; c < m.channels; ++c) {
    A sum = 0, squares = 0;
    for (std::int64_t t = 0; t < rows; ++t) sum += A(row<T>(o.x, t)[c]);
    A const mean = rows == 0 ? A(0) : sum / A(rows);
    for (std::int64_t t = 0; t < rows; ++t) {
      A const apart = A(row<T>(o.x, t)[c]) - mean;
      squares += apart * apart;
    }
    m.mean(c) = double(mean);
    m.squares(c) = double(squares);
  }
}

/// A is the type of mean and rstd.
template <class A>
void merge_moments(MergeMoments const& o) {
  Moments const merged(o.merged);
  Moments const first(o.pieces);
  std::copy_n(first.at, 1 + 2 * merged.channels, merged.at);
  for (std::int64_t r = 1; r < o.pieces.shape[0]; ++r) {
    Moments const piece(o.pieces, r);
    double const before = merged.count(), total = before + piece.count();
    if (piece.count() == 0) continue;
    for (std::int64_t c = 0; c < merged.channels; ++c) {
      double const apart = piece.mean(c) - merged.mean(c);
      merged.mean(c) += apart * (piece.count() / total);
      merged.squares(c) += piece.squares(c) + apart * apart * (before * piece.count() / total);
    }
    merged.count() = total;
  }
  double const n = std::max(merged.count(), 1.0);
  for (std::int64_t c = 0; c < merged.channels; ++c) {
    o.mean.as<A>()[c] = A(merged.mean(c));
    o.rstd.as<A>()[c] = A(1 / std::sqrt(merged.squares(c) / n + o.epsilon));
  }
}

template <class T>
void batch_norm(BatchNorm const& o) {
  using A = Accumulator<T>;
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  A const* const mean = o.mean.as<A>();
  A const* const rstd = o.rstd.as<A>();
  for (std::int64_t t = 0; t < rows; ++t) {
    T const* const x = row<T>(o.x, t);
    T* const y = row<T>(o.y, t);
    for (std::int64_t c = 0; c < channels; ++c) y[c] = T(A(o.gamma.as<T>()[c]) * ((A(x[c]) - mean[c]) * rstd[c]) + A(o.beta.as<T>()[c]));
  }
}

template <class T>
void batch_norm_weight(BatchNormWeight const& o) {
  using A = Accumulator<T>;
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  A* const dgamma = o.dgamma.as<A>();
  A* const dbeta = o.dbeta.as<A>();
  for (std::int64_t c = 0; c < channels; ++c) {
    A const mean = o.mean.as<A>()[c], rstd = o.rstd.as<A>()[c];
    A sum = 0, sum_xhat = 0;
    for (std::int64_t t = 0; t < rows; ++t) {
      A const g = A(row<T>(o.dy, t)[c]);
      sum += g;
      sum_xhat += g * ((A(row<T>(o.x, t)[c]) - mean) * rstd);
    }
    dgamma[c] = o.write == Write::overwrite ? sum_xhat : dgamma[c] + sum_xhat;
    dbeta[c] = o.write == Write::overwrite ? sum : dbeta[c] + sum;
  }
}

template <class T>
void batch_norm_input(BatchNormInput const& o) {
  using A = Accumulator<T>;
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  A const n = A(Moments(o.moments).count());
  for (std::int64_t t = 0; t < rows; ++t) {
    T const* const x = row<T>(o.x, t);
    T const* const dy = row<T>(o.dy, t);
    T* const dx = row<T>(o.dx, t);
    for (std::int64_t c = 0; c < channels; ++c) {
      A const rstd = o.rstd.as<A>()[c], xhat = (A(x[c]) - o.mean.as<A>()[c]) * rstd;
      A const apart = A(dy[c]) - o.dbeta.as<A>()[c] / n - xhat * (o.dgamma.as<A>()[c] / n);
      dx[c] = T(A(o.gamma.as<T>()[c]) * rstd * apart);
    }
  }
}

/// A is the type of mean and variance.
template <class A>
void running_update(RunningUpdate const& o) {
  Moments const batch(o.moments);
  double const n = batch.count();
  if (n == 0) return;
  A* const mean = o.mean.as<A>();
  A* const variance = o.variance.as<A>();
  double const degrees = mutant("variance_biased") ? n : n - 1;
  for (std::int64_t c = 0; c < batch.channels; ++c) {
    mean[c] = A(double(mean[c]) + o.momentum * (batch.mean(c) - double(mean[c])));
    if (n > 1) variance[c] = A(double(variance[c]) + o.momentum * (batch.squares(c) / degrees - double(variance[c])));
  }
  *o.batches.as<std::int64_t>() += 1;
}

template <class A>
void inverse_deviation(InverseDeviation const& o) {
  for (std::int64_t c = 0; c < o.rstd.elements(); ++c) o.rstd.as<A>()[c] = A(1 / std::sqrt(double(o.variance.as<A>()[c]) + o.epsilon));
}

}  // namespace shardmark::reference
